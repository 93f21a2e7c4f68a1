/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_BAD_CPU_H
#define KERNEL_SCHEDULER_BAD_CPU_H

/* What policies/support/hooks.h, included after this, does if a policy names a CPU that does not
 * exist. */
_Noreturn void bad_cpu_panic(void);
#define NOTE_BAD_CPU(scheduler) bad_cpu_panic()

#endif
