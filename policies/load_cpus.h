/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_LOAD_CPUS_H
#define SCHEDLAB_LOAD_CPUS_H

#include "placement.h"
#include "policy.h"

/*
 * Several CPUs under policies whose tasks have loads, as in Linux: tasks are placed and moved so
 * that the CPUs' sums of loads become more even. A policy's queue state begins with the sum.
 */
struct load_sum {
    uint64_t load; /* 0: the CPU has no task */
};
typedef struct load_sum SHARED_MEMORY load_sum_t;

POLICY_FUNCTION uint64_t load_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct load_sum)->load;
}

/* Returns Linux's factor for longer times on more CPUs. */
POLICY_FUNCTION uint64_t load_time_factor(const scheduler_t *scheduler)
{
    return 1u + (scheduler->cpus >= 2) + (scheduler->cpus >= 4) + (scheduler->cpus >= 8);
}

/* Places a new task where the load is least. A task that wakes stays, unless its CPU is busy and
 * another is idle. */
POLICY_FUNCTION uint32_t load_place(const scheduler_t *scheduler, const task_t *task,
                                    enum enqueue_reason reason)
{
    uint32_t home = home_cpu_of(scheduler, task);
    uint32_t best = home;
    uint64_t least = load_of(scheduler->queue[home]);
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->queues && least > 0 && LOOP_GUARD; cpu++) {
        uint64_t load = load_of(scheduler->queue[cpu]);
        if (load < least && task_may_run_on(task, cpu)) {
            best = cpu;
            least = load;
        }
    }
    return reason == ENQUEUE_WOKEN && least > 0 ? home : best;
}

POLICY_FUNCTION uint32_t load_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    if (idle)
        return balance_longest(scheduler, cpu, idle);
    uint32_t busiest = NO_CPU;
    uint64_t most = load_of(scheduler->queue[cpu]);
    for (uint32_t other = LOOP_START(0); other < scheduler->queues && LOOP_GUARD; other++) {
        uint64_t load = load_of(scheduler->queue[other]);
        if (scheduler->queue[other]->queued == 0 || load <= most)
            continue;
        busiest = other;
        most = load;
    }
    return busiest;
}

/* Locked (`queue`). Returns true if moving a task of this load, which is queued here, to `cpu`
 * would make the loads more even. */
POLICY_FUNCTION bool load_move_evens(const run_queue_t *queue, uint64_t load, uint32_t cpu)
{
    uint64_t other = load_of(queue->scheduler->queue[cpu]);
    return other == 0 || other + load < load_of(queue);
}

#endif
