/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_MACHINE_SHAPE_H
#define SCHEDLAB_MACHINE_SHAPE_H

#include "policy.h"

/*
 * The distances between CPUs and their speeds, for policies that ask. On a machine of unknown shape
 * all CPUs are alike: each is its own core, all share one cache and one node, and all are as fast
 * as the fastest.
 *
 * Every `cpu` is one of the machine's: below scheduler->cpus.
 */

typedef const struct machine_shape SHARED_MEMORY machine_shape_t;

/* Returns the CPU's speed at its highest level: CAPACITY_FULL if no CPU is faster. */
POLICY_FUNCTION uint32_t cpu_capacity(const scheduler_t *scheduler, uint32_t cpu)
{
    machine_shape_t *shape = scheduler->shape;
    return shape ? shape->kind[shape->cpu[cpu].kind].capacity[0] : CAPACITY_FULL;
}

/* Returns the CPU's speed at its present level. */
POLICY_FUNCTION uint32_t cpu_capacity_now(const scheduler_t *scheduler, uint32_t cpu)
{
    machine_shape_t *shape = scheduler->shape;
    return shape ? shape->cpu[cpu].capacity_now : CAPACITY_FULL;
}

/* Returns the next hardware thread of the CPU's core, in a ring: the CPU itself if it is alone. */
POLICY_FUNCTION uint32_t next_sibling(const scheduler_t *scheduler, uint32_t cpu)
{
    machine_shape_t *shape = scheduler->shape;
    return shape ? shape->cpu[cpu].sibling : cpu;
}

POLICY_FUNCTION bool share_core(const scheduler_t *scheduler, uint32_t cpu, uint32_t other)
{
    machine_shape_t *shape = scheduler->shape;
    return shape ? shape->cpu[cpu].core == shape->cpu[other].core : cpu == other;
}

POLICY_FUNCTION bool share_cache(const scheduler_t *scheduler, uint32_t cpu, uint32_t other)
{
    machine_shape_t *shape = scheduler->shape;
    return !shape || shape->cpu[cpu].cache == shape->cpu[other].cache;
}

POLICY_FUNCTION uint32_t node_of(const scheduler_t *scheduler, uint32_t cpu)
{
    machine_shape_t *shape = scheduler->shape;
    return shape ? shape->cpu[cpu].node : 0;
}

/* Returns the memory distance from the CPU to `other`'s node: DISTANCE_LOCAL in the same node. */
POLICY_FUNCTION uint32_t node_distance(const scheduler_t *scheduler, uint32_t cpu, uint32_t other)
{
    machine_shape_t *shape = scheduler->shape;
    return shape ? shape->distance[shape->cpu[cpu].node][shape->cpu[other].node] : DISTANCE_LOCAL;
}

#endif
