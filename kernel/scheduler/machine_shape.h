/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_MACHINE_SHAPE_H
#define KERNEL_SCHEDULER_MACHINE_SHAPE_H

#include "policies/policy.h"

/* Returns the shape of the boot argument `shape` (policies/support/shape_text.h), or null if
 * there is none. Policies read it; the kernel itself treats all CPUs alike. */
const struct machine_shape *machine_shape_at_boot(void);

#endif
