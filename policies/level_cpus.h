/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_LEVEL_CPUS_H
#define SCHEDLAB_LEVEL_CPUS_H

#include "level_lists.h"
#include "placement.h"

/*
 * Levels on several CPUs: no level is served for longer than a tick while a task of a higher one
 * waits elsewhere. A task that is forked or wakes goes to the CPU that serves the lowest level. At
 * its ticks each CPU looks for a waiting task that is higher than its own. Levels are compared by
 * rank (level_lists.h), and by the counts at the start of each queue's state. So this works for
 * every policy that keeps those counts.
 */

/* Returns the rank that the CPU serves, or will serve after its next pick; NO_RANK: it is idle. */
POLICY_FUNCTION uint32_t served_rank(const run_queue_t *queue)
{
    const level_counts_t *counts = level_counts_of(queue);
    uint32_t waiting = level_first(counts);
    return waiting < counts->running ? waiting : counts->running;
}

/* Returns a pressure: the lower, the sooner a task is served. Lowest at an idle CPU, then at the
 * CPU that serves the lowest level, then at the CPU with fewer tasks. */
POLICY_FUNCTION uint64_t level_pressure(const run_queue_t *queue)
{
    return (uint64_t)(NO_RANK - served_rank(queue)) << 32 | queue_load(queue);
}

/* A hook: place(). Of equally good CPUs, it prefers the task's own, then the lowest. */
POLICY_FUNCTION uint32_t place_by_level(const scheduler_t *scheduler, const task_t *task,
                                        enum enqueue_reason reason)
{
    (void)reason;
    uint32_t best = home_cpu_of(scheduler, task);
    uint64_t least = level_pressure(scheduler->queue[best]);
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->queues && least > 0 && LOOP_GUARD; cpu++) {
        uint64_t pressure = level_pressure(scheduler->queue[cpu]);
        if (pressure < least && task_may_run_on(task, cpu)) {
            best = cpu;
            least = pressure;
        }
    }
    return best;
}

/*
 * Returns true if `queue` should take the first waiting task of `other`. It should if that task is
 * higher than all tasks of `queue`. If the level is equal, it should if `other` serves a higher
 * level now, or has two more tasks at this level, so that equals get equal turns. A task that waits
 * alone is about to be run by its own CPU.
 */
POLICY_FUNCTION bool should_take(const run_queue_t *queue, const run_queue_t *other)
{
    const level_counts_t *our_counts = level_counts_of(queue);
    const level_counts_t *other_counts = level_counts_of(other);
    uint32_t served = served_rank(queue);
    uint32_t offered = level_first(other_counts);
    if (offered == NO_RANK || queue_load(other) < 2)
        return false;
    if (offered != served)
        return offered < served;
    uint32_t our_equals = our_counts->waiting[served] + (our_counts->running == served);
    uint32_t other_equals = other_counts->waiting[served] + (other_counts->running == served);
    return other_counts->running < served || other_equals >= our_equals + 2;
}

/* A hook: balance(). Chooses the CPU where the highest task waits; of several, the one where
 * most tasks wait at that level. */
POLICY_FUNCTION uint32_t balance_by_level(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    uint32_t best = NO_CPU;
    uint64_t greatest = 0;
    (void)idle;
    for (uint32_t i = LOOP_START(0); i < scheduler->queues && LOOP_GUARD; i++) {
        const run_queue_t *other = scheduler->queue[i];
        if (i == cpu || !should_take(scheduler->queue[cpu], other))
            continue;
        const level_counts_t *counts = level_counts_of(other);
        uint32_t rank = level_first(counts);
        uint64_t need = (uint64_t)(NO_RANK - rank) << 32 | counts->waiting[rank];
        if (need > greatest) {
            best = i;
            greatest = need;
        }
    }
    return best;
}

#endif
