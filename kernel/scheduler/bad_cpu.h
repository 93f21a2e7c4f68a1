/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_BAD_CPU_H
#define KERNEL_SCHEDULER_BAD_CPU_H

#include "policies/support/flaws.h"

/* The reaction of policies/support/hooks.h, included after this, to a policy that names a CPU
 * that does not exist, or that the task may not use. */
_Noreturn void bad_cpu_panic(enum queue_flaw flaw);
#define NOTE_BAD_CPU(scheduler, flaw) bad_cpu_panic(flaw)

#endif
