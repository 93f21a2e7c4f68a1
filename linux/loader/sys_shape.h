/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_SYS_SHAPE_H
#define LINUX_LOADER_SYS_SHAPE_H

#include <stdint.h>

#include "policies/policy.h"

/*
 * Reads the machine's shape from its /sys, for the loader, and for `./schedlab shape --sys`
 * (tools/sys_shape.c). In containers and virtual machines much is missing or made up.
 */

/* Missing or impossible values in /sys, and their replacements. */
enum sys_gap {
    GAP_NODES,
    GAP_DISTANCES,
    GAP_THREADS,
    GAP_CACHES,
    GAP_SPLIT_CACHES,
    GAP_CAPACITIES,
    GAP_SPEEDS,
    GAP_KINDS,
    GAP_WHOLE,
    GAPS,
};

/* Returns a description of the gap. */
const char *sys_gap_text(enum sys_gap gap);

/*
 * Reads the shape of CPUs 0 to cpus - 1, at most POLICY_CPUS_MAX. Each offline CPU counts as a
 * separate core. `folder` is /sys, or a copy of its devices/system/cpu and /node. Returns the gaps,
 * a bit for each.
 */
uint32_t sys_shape_read(const char *folder, uint32_t cpus, struct machine_shape *shape);

#endif
