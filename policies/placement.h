/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_PLACEMENT_H
#define SCHEDLAB_PLACEMENT_H

#include "policy.h"

/*
 * The default placement on several CPUs. Loads are read without locks and may
 * be slightly stale. At worst a task is placed second best, and the next
 * balance corrects it.
 */

POLICY_FUNCTION uint32_t queue_load(const run_queue_t *queue)
{
    return queue->queued + queue->running;
}

/* Returns the number of tasks that wait for a CPU now. Tasks that the policy holds wait for a
 * time instead. */
POLICY_FUNCTION uint32_t queue_waiting(const run_queue_t *queue)
{
    uint32_t queued = queue->queued;
    uint32_t ineligible = queue->held;
    return queued > ineligible ? queued - ineligible
                               : 0; /* read without a lock: the two values may not be consistent */
}

/* Tasks among which the CPU's time is shared now. */
POLICY_FUNCTION uint32_t queue_ready(const run_queue_t *queue)
{
    return queue_waiting(queue) + queue->running;
}

/* Returns the lowest CPU that the task may use; `fallback` if there is none, which no host
 * allows. */
POLICY_RARE_FUNCTION uint32_t place_lowest(const scheduler_t *scheduler, const task_t *task,
                                           uint32_t fallback)
{
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->cpus && LOOP_GUARD; cpu++) {
        if (task_may_run_on(task, cpu))
            return cpu;
    }
    return fallback;
}

/* Where a search for a task's place begins: at its own CPU, or the lowest if it has none; or at
 * the lowest that it may use, if that is another CPU. */
POLICY_FUNCTION uint32_t home_cpu_of(const scheduler_t *scheduler, const task_t *task)
{
    uint32_t home = task->cpu < scheduler->queues ? task->cpu : 0;
    return task_may_run_on(task, home) ? home : place_lowest(scheduler, task, home);
}

/* The CPU with the fewest tasks; the task's own CPU where it is one of them, else the lowest. */
POLICY_FUNCTION uint32_t place_fewest(const scheduler_t *scheduler, const task_t *task)
{
    uint32_t best = home_cpu_of(scheduler, task);
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
 * Returns true if `cpu`, which runs a task, scans all queues at this tick. The scan's cost grows
 * with the number of queues, and each CPU does it. So from 16 queues each CPU scans only at some of
 * its ticks, different CPUs at different ticks. The average is 8 queues a tick, at most 12.
 */
#define QUEUES_A_TICK 8u

POLICY_FUNCTION bool search_start(const scheduler_t *scheduler, uint32_t cpu)
{
    uint32_t ticks = scheduler->queues / QUEUES_A_TICK;
    return ticks <= 1 || (scheduler->queue[cpu]->now / scheduler->tick_ns + cpu) % ticks == 0;
}

/* Returns an idle CPU (the lowest of several) if a task waits for the CPU that `cpu` is. With
 * many CPUs it scans only at some ticks. */
POLICY_FUNCTION uint32_t push_to_idle(const scheduler_t *scheduler, uint32_t cpu)
{
    if (queue_waiting(scheduler->queue[cpu]) == 0 || !search_start(scheduler, cpu))
        return NO_CPU;
    for (uint32_t other = LOOP_START(0); other < scheduler->queues && LOOP_GUARD; other++) {
        if (queue_ready(scheduler->queue[other]) == 0)
            return other;
    }
    return NO_CPU;
}

/*
 * Returns the CPU with the most tasks that may run (the lowest of several), if taking one makes the
 * two more even: it must have at least two more than `cpu`. So an idle CPU does not take a task
 * that its own CPU is about to run. With many CPUs, a busy CPU scans only at some ticks.
 */
POLICY_FUNCTION uint32_t balance_longest(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    uint32_t longest = NO_CPU;
    if (!idle && !search_start(scheduler, cpu))
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
