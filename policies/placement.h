/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_PLACEMENT_H
#define SCHEDLAB_PLACEMENT_H

#include "policy.h"

/*
 * What policies do on several CPUs unless they know better. Loads are read
 * without locks and may be a moment old: the worst that follows is a task that
 * is placed second best, and the next balance mends it.
 */

POLICY_FUNCTION uint32_t queue_load(const run_queue_t *queue)
{
    return queue->queued + queue->running;
}

/* Tasks that wait for a CPU now: those that the policy holds back wait for a time. */
POLICY_FUNCTION uint32_t queue_waiting(const run_queue_t *queue)
{
    uint32_t queued = queue->queued;
    uint32_t held = queue->held;
    return queued > held ? queued - held
                         : 0; /* read without a lock: they may not be of one moment */
}

/* Tasks among which the CPU's time is shared now. */
POLICY_FUNCTION uint32_t queue_ready(const run_queue_t *queue)
{
    return queue_waiting(queue) + queue->running;
}

/* The lowest CPU on which the task may run; `otherwise` if there is none, which no host allows. */
POLICY_RARE_FUNCTION uint32_t place_lowest(const scheduler_t *scheduler, const task_t *task,
                                           uint32_t otherwise)
{
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->cpus && LOOP_GUARD; cpu++) {
        if (task_may_run_on(task, cpu))
            return cpu;
    }
    return otherwise;
}

/* Where a search for a task's place begins: at its own CPU, or the lowest if it has none; or at the
 * lowest on which it may run, if that is another one. */
POLICY_FUNCTION uint32_t place_own(const scheduler_t *scheduler, const task_t *task)
{
    uint32_t own = task->cpu < scheduler->queues ? task->cpu : 0;
    return task_may_run_on(task, own) ? own : place_lowest(scheduler, task, own);
}

/* The CPU with the fewest tasks; the task's own CPU where it is one of them, else the lowest. */
POLICY_FUNCTION uint32_t place_fewest(const scheduler_t *scheduler, const task_t *task)
{
    uint32_t best = place_own(scheduler, task);
    uint32_t best_load = queue_load(scheduler->queue[best]);
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->queues && best_load > 0 && LOOP_GUARD;
         cpu++) {
        uint32_t load = queue_load(scheduler->queue[cpu]);
        if (load < best_load && task_may_run_on(task, cpu)) {
            best = cpu;
            best_load = load;
        }
    }
    return best;
}

/*
 * Does `cpu`, which runs a task, look through all queues at this tick? That takes the longer the
 * more there are, and each CPU does it: so from 16 queues on a CPU does it at some of its ticks
 * only, each CPU at others, and one look comes to 8 queues a tick, or 12 at most.
 */
#define QUEUES_A_TICK 8u

POLICY_FUNCTION bool looks_around(const scheduler_t *scheduler, uint32_t cpu)
{
    uint32_t ticks = scheduler->queues / QUEUES_A_TICK;
    return ticks <= 1 || (scheduler->queue[cpu]->now / scheduler->tick_ns + cpu) % ticks == 0;
}

/* An idle CPU (the lowest of several), if a task waits for the one that `cpu` runs. With many CPUs
 * at some ticks only. */
POLICY_FUNCTION uint32_t push_to_idle(const scheduler_t *scheduler, uint32_t cpu)
{
    if (queue_waiting(scheduler->queue[cpu]) == 0 || !looks_around(scheduler, cpu))
        return NO_CPU;
    for (uint32_t other = LOOP_START(0); other < scheduler->queues && LOOP_GUARD; other++) {
        if (queue_ready(scheduler->queue[other]) == 0)
            return other;
    }
    return NO_CPU;
}

/*
 * The CPU with the most tasks that may run (the lowest of several), if taking one
 * from it makes the two more even: it must have at least two more than `cpu`. So an
 * idle CPU leaves a task alone whose own CPU is about to run it. With many CPUs one
 * that is not idle looks at some ticks only.
 */
POLICY_FUNCTION uint32_t balance_longest(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    uint32_t longest = NO_CPU;
    if (!idle && !looks_around(scheduler, cpu))
        return NO_CPU;
    uint32_t most = idle ? 1 : queue_ready(scheduler->queue[cpu]) + 1;
    for (uint32_t other = LOOP_START(0); other < scheduler->queues && LOOP_GUARD; other++) {
        const run_queue_t *queue = scheduler->queue[other];
        uint32_t ready = queue_ready(queue);
        if (other == cpu || queue_waiting(queue) == 0 || ready <= most)
            continue;
        longest = other;
        most = ready;
    }
    return longest;
}

#endif
