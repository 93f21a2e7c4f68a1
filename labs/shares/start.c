/* SPDX-License-Identifier: MIT */

/*
 * Proportional shares on several CPUs, by strides: each task has a pass, which grows by what it
 * runs divided by its tickets, and the task with the lowest pass is next. All CPUs share one queue.
 */

#include "policy.h"
#include "task_list.h"

struct passes_task {
    uint64_t pass;
    uint64_t began; /* its run time when it was picked */
};

struct passes_queue {
    struct task_list line;
    uint64_t pass; /* the lowest pass at the last decision: the virtual time */
};

POLICY_FUNCTION bool passes_shared_queue(const scheduler_t *scheduler)
{
    (void)scheduler;
    return true;
}

/* To do: what pass does a new task start with, or a task that slept? */
POLICY_FUNCTION void passes_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)reason;
    task_list_append(&STATE_OF(queue, struct passes_queue)->line, task);
}

POLICY_FUNCTION void passes_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct passes_queue)->line, task);
}

/* To do: the task with the lowest pass. */
POLICY_FUNCTION task_t *passes_pick(run_queue_t *queue, uint32_t cpu)
{
    return task_list_take_first_on(&STATE_OF(queue, struct passes_queue)->line, cpu);
}

POLICY_FUNCTION enum tick_verdict passes_tick(run_queue_t *queue, task_t *task)
{
    (void)queue;
    (void)task;
    return TICK_PREEMPT;
}

POLICY_FUNCTION uint64_t passes_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    (void)task;
    return 1;
}

POLICY_FUNCTION enum share_attribute passes_shares_by(const scheduler_t *scheduler)
{
    (void)scheduler;
    return SHARES_BY_TICKETS;
}

POLICY_DEFINITION policy_passes = {
    .name = "passes",
    .meaning = "shares by tickets, on all CPUs together",
    .source = "Waldspurger and Weihl 1995",
    .order = "The task with the lowest pass is next.",
    .task_bytes = sizeof(struct passes_task),
    .enqueue = passes_enqueue,
    .dequeue = passes_dequeue,
    .pick = passes_pick,
    .tick = passes_tick,
    .time_slice = passes_time_slice,
    .shared_queue = passes_shared_queue,
    .shares_by = passes_shares_by,
};
