/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_NUMBERS_H
#define LINUX_BPF_NUMBERS_H

/* Values of macros of Linux, which vmlinux.h does not contain. */

#define ESRCH  3
#define ENOMEM 12
#define EBUSY  16
#define EINVAL 22
#define ERANGE 34

/* In struct affinity_context: a thread may not move at present; it may move again. */
#define SCA_MIGRATE_DISABLE 0x2
#define SCA_MIGRATE_ENABLE  0x4

#define PF_EXITING      0x4
#define TASK_IS_RUNNING 0x0
#define TASK_IS_DEAD    0x80

#endif
