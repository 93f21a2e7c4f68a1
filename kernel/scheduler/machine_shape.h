/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_MACHINE_SHAPE_H
#define KERNEL_SCHEDULER_MACHINE_SHAPE_H

#include "policies/policy.h"

/* Returns the shape that the boot argument `shape` says (policies/support/shape_text.h), or null if
 * there is none. Policies read it; the kernel itself takes all CPUs to be alike. */
const struct machine_shape *machine_shape_at_boot(void);

#endif
