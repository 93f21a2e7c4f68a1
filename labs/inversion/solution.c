/* SPDX-License-Identifier: MIT */

/*
 * Priorities with inheritance: while a more urgent task waits for a lock that this one has, this
 * one is served as that task would be. So no task between them holds up both.
 */

#include "policy.h"
#include "task_list.h"

struct lend_queue {
    struct task_list line; /* in order of arrival */
};

/* The effective priority of the task; `lent` is an inherited priority + 1. */
POLICY_FUNCTION int64_t served(const task_t *task)
{
    int64_t base = task->priority;
    int64_t lent = (int64_t)task->lent - 1;
    return task->lent && lent < base ? lent : base;
}

POLICY_FUNCTION void lend_scheduler_init(scheduler_t *scheduler)
{
    scheduler->follows_waits = true;
}

POLICY_FUNCTION void lend_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    task_list_t *line = &STATE_OF(queue, struct lend_queue)->line;
    task_list_insert_before(line, task, reason == ENQUEUE_PREEMPTED ? line->first : NULL);
}

POLICY_FUNCTION void lend_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct lend_queue)->line, task);
}

POLICY_FUNCTION task_t *most_urgent(run_queue_t *queue, uint32_t cpu)
{
    task_t *best = task_list_first_on(&STATE_OF(queue, struct lend_queue)->line, cpu);
    for (task_t *task = best; task && LOOP_GUARD; task = task_list_next_on(task->next, cpu)) {
        if (served(task) < served(best))
            best = task;
    }
    return best;
}

POLICY_FUNCTION task_t *lend_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = most_urgent(queue, cpu);
    if (task)
        task_list_remove(&STATE_OF(queue, struct lend_queue)->line, task);
    return task;
}

/* Equally urgent tasks take turns of one tick. */
POLICY_FUNCTION enum tick_verdict lend_tick(run_queue_t *queue, task_t *task)
{
    task_t *next = most_urgent(queue, queue->cpu);
    return next && served(next) <= served(task) ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION bool lend_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    (void)queue;
    return served(task) < served(running);
}

/* Other tasks wait for the owner than before, or are served otherwise. */
POLICY_FUNCTION bool lend_waiters_changed(run_queue_t *queue, task_t *owner)
{
    int64_t before = served(owner);
    uint64_t lent = 0;
    (void)queue;
    for (const task_t *waiter = owner->first_waiter; waiter && LOOP_GUARD;
         waiter = waiter->next_waiter) {
        uint64_t offered = (uint64_t)served(waiter) + 1;
        lent = lent == 0 || offered < lent ? offered : lent;
    }
    owner->lent = lent;
    return served(owner) != before;
}

POLICY_FUNCTION uint64_t lend_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    (void)task;
    return 1;
}

POLICY_DEFINITION policy_lend = {
    .name = "lend",
    .meaning = "the most urgent task first; those that wait lend their urgency",
    .source = "Sha, Rajkumar and Lehoczky 1990",
    .order = "The task that is served by the lowest number goes first.",
    .scheduler_init = lend_scheduler_init,
    .enqueue = lend_enqueue,
    .dequeue = lend_dequeue,
    .pick = lend_pick,
    .tick = lend_tick,
    .preempts = lend_preempts,
    .waiters_changed = lend_waiters_changed,
    .time_slice = lend_time_slice,
};
