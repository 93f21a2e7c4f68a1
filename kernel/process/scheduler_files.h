/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_PROCESS_SCHEDULER_FILES_H
#define KERNEL_PROCESS_SCHEDULER_FILES_H

/* Creates /proc/sched_status, sched_tunables and sched_policies, as docs/system-calls.md
 * describes them. Called at boot, once the disk is mounted. */
void scheduler_files_init(void);

#endif
