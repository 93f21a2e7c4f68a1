/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_NEAR_PLACEMENT_H
#define SCHEDLAB_NEAR_PLACEMENT_H

#include "machine_shape.h"
#include "placement.h"

/*
 * A place() for policies with a queue for each CPU, on a machine with a shape: it chooses among the
 * idle CPUs. It prefers a CPU whose whole core is idle over one with a busy sibling; then the
 * faster CPU; then the nearer one, because more of the task's data is cached there.
 */

/* Returns true if all hardware threads of the CPU's core are idle. */
POLICY_FUNCTION bool core_is_idle(const scheduler_t *scheduler, uint32_t cpu)
{
    uint32_t thread = (uint32_t)LOOP_START(cpu);
    while (LOOP_GUARD) {
        if (thread >= scheduler->queues || queue_load(scheduler->queue[thread]) > 0)
            return false;
        thread = (uint32_t)LOOP_START(next_sibling(scheduler, thread));
        if (thread == cpu)
            return true;
    }
    return false;
}

/* Returns the cache distance of `other` for a task that ran on `cpu`: 0 on the same CPU. */
POLICY_FUNCTION uint32_t cpu_distance(const scheduler_t *scheduler, uint32_t cpu, uint32_t other)
{
    if (cpu == other)
        return 0;
    if (share_core(scheduler, cpu, other))
        return 1;
    if (share_cache(scheduler, cpu, other))
        return 2;
    return node_distance(scheduler, cpu, other);
}

/* Ranks an idle CPU for a task that ran on `home`; lower is better. */
POLICY_FUNCTION uint32_t idle_cpu_rank(const scheduler_t *scheduler, uint32_t home, uint32_t cpu)
{
    uint32_t half = core_is_idle(scheduler, cpu) ? 0 : 1;
    uint32_t slowness = CAPACITY_FULL - cpu_capacity(scheduler, cpu);
    return half << 24 | slowness << 8 | cpu_distance(scheduler, home, cpu);
}

/* Returns the best idle CPU that the task may use, the lowest of several. If none is idle,
 * returns the CPU with the fewest tasks. */
POLICY_FUNCTION uint32_t place_near(const scheduler_t *scheduler, const task_t *task)
{
    uint32_t home = home_cpu_of(scheduler, task);
    uint32_t best = (uint32_t)LOOP_START(NO_CPU);
    uint32_t best_rank = (uint32_t)LOOP_START(UINT32_MAX);
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->queues && best_rank > 0 && LOOP_GUARD;
         cpu++) {
        if (queue_load(scheduler->queue[cpu]) > 0 || !task_may_run_on(task, cpu))
            continue;
        /* A comparison with a copy must not reveal the loop counter's value: BPF's verifier
         * would follow each iteration. */
        uint32_t copy = (uint32_t)LOOP_START(cpu);
        uint32_t rank = (uint32_t)LOOP_START(idle_cpu_rank(scheduler, home, copy));
        if (rank < best_rank) {
            best = cpu;
            best_rank = rank;
        }
    }
    return best == NO_CPU ? place_fewest(scheduler, task) : best;
}

#endif
