/* SPDX-License-Identifier: MIT */

/*
 * Proportional shares on several CPUs, by strides: each task has a pass, which grows by what it
 * runs divided by its tickets, and the task with the lowest pass is next. All CPUs share one queue.
 */

#include "policy.h"
#include "task_list.h"

enum { ONE = 1000 }; /* parts of a pass for each nanosecond of a task with one ticket */

struct passes_task {
    uint64_t pass;
    uint64_t began; /* its run time when it was picked */
};

struct passes_queue {
    struct task_list line;
    uint64_t pass; /* the lowest one that was picked last: time goes on by it */
};

POLICY_FUNCTION bool passes_shared_queue(const scheduler_t *scheduler)
{
    (void)scheduler;
    return false;
}

/* A task that comes, new or from sleep, has missed nothing: it begins where the others are. */
POLICY_FUNCTION void passes_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    struct passes_queue SHARED_MEMORY *state = STATE_OF(queue, struct passes_queue);
    struct passes_task SHARED_MEMORY *own = STATE_OF(task, struct passes_task);
    if ((reason == ENQUEUE_NEW || reason == ENQUEUE_WOKEN) && own->pass < state->pass)
        own->pass = state->pass;
    task_list_append(&state->line, task);
}

POLICY_FUNCTION void passes_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct passes_queue)->line, task);
}

POLICY_FUNCTION uint64_t pass_of(const task_t *task)
{
    return STATE_OF(task, struct passes_task)->pass;
}

POLICY_FUNCTION task_t *passes_pick(run_queue_t *queue, uint32_t cpu)
{
    struct passes_queue SHARED_MEMORY *state = STATE_OF(queue, struct passes_queue);
    task_t *best = state->line.first;
    (void)cpu;
    for (task_t *task = best; task && LOOP_GUARD; task = task->next) {
        if (pass_of(task) < pass_of(best))
            best = task;
    }
    if (!best)
        return NULL;
    task_list_remove(&state->line, best);
    if (state->pass < pass_of(best))
        state->pass = pass_of(best);
    STATE_OF(best, struct passes_task)->began = best->run_time;
    return best;
}

POLICY_FUNCTION void passes_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    struct passes_task SHARED_MEMORY *own = STATE_OF(task, struct passes_task);
    (void)queue;
    (void)reason;
    own->pass += (task->run_time - own->began) * ONE / task->tickets;
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
    .stopped = passes_stopped,
    .time_slice = passes_time_slice,
    .shared_queue = passes_shared_queue,
    .shares_by = passes_shares_by,
};
