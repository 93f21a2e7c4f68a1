/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Unlimited time slices, and last in, first out: a task that never blocks keeps its CPU, and all
 * other tasks of that CPU starve. No single decision is wrong; only a watchdog detects the effect.
 */

#include "fifo.h"

POLICY_FUNCTION void starves_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    struct task_list SHARED_MEMORY *tasks = STATE_OF(queue, struct task_list);
    (void)reason;
    task_list_insert_before(tasks, task, tasks->first);
}

POLICY_FUNCTION enum tick_verdict starves_tick(run_queue_t *queue, task_t *task)
{
    (void)queue;
    (void)task;
    return TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t starves_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    (void)task;
    return UINT64_MAX;
}

POLICY_DEFINITION policy_starves = {
    .name = "starves",
    .meaning = "a test: the thread that has the CPU keeps it",
    .source = "a test",
    .order = "The task that came first is next.",
    .enqueue = starves_enqueue,
    .dequeue = fifo_dequeue,
    .pick = fifo_pick,
    .tick = starves_tick,
    .time_slice = starves_time_slice,
};
