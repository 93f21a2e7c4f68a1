/* SPDX-License-Identifier: MIT */

/*
 * Priorities with aging: the most urgent task goes first, which is the one with the lowest number.
 * A waiting task becomes more urgent by one every `aging` ticks, so that none starves.
 */

#include "policy.h"
#include "task_list.h"

enum { AGING_TICKS };

static const struct tunable aging_tunables[] = {
    [AGING_TICKS] = {"aging", "ticks of waiting that make a task more urgent by one", 1, 10, 1000},
};

struct aging_queue {
    struct task_list line; /* in order of arrival */
};

POLICY_FUNCTION int64_t urgency(const run_queue_t *queue, const task_t *task)
{
    uint64_t waited = (queue->now - task->queued_since) / queue->scheduler->tick_ns;
    return task->priority - (int64_t)(waited / (uint64_t)queue->scheduler->tunable[AGING_TICKS]);
}

POLICY_FUNCTION void aging_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    task_list_t *line = &STATE_OF(queue, struct aging_queue)->line;
    task_list_insert_before(line, task, reason == ENQUEUE_PREEMPTED ? line->first : NULL);
}

POLICY_FUNCTION void aging_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct aging_queue)->line, task);
}

POLICY_FUNCTION task_t *most_urgent(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = task_list_first_on(&STATE_OF(queue, struct aging_queue)->line, cpu);
    task_t *best = task;
    while (task && LOOP_GUARD) {
        if (urgency(queue, task) < urgency(queue, best))
            best = task;
        task = task_list_next_on(task->next, cpu);
    }
    return best;
}

POLICY_FUNCTION task_t *aging_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = most_urgent(queue, cpu);
    if (task)
        task_list_remove(&STATE_OF(queue, struct aging_queue)->line, task);
    return task;
}

/* Equally urgent tasks take turns of one tick. */
POLICY_FUNCTION enum tick_verdict aging_tick(run_queue_t *queue, task_t *task)
{
    task_t *next = most_urgent(queue, queue->cpu);
    return next && urgency(queue, next) <= task->priority ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION bool aging_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    return urgency(queue, task) < running->priority;
}

POLICY_FUNCTION uint64_t aging_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    (void)task;
    return 1;
}

POLICY_DEFINITION policy_aging = {
    .name = "aging",
    .meaning = "the most urgent task first; waiting makes a task more urgent",
    .source = "textbooks of operating systems",
    .order = "The most urgent task goes first, and of equal ones the one that came first.",
    .tunables = aging_tunables,
    .tunable_count = sizeof(aging_tunables) / sizeof(aging_tunables[0]),
    .enqueue = aging_enqueue,
    .dequeue = aging_dequeue,
    .pick = aging_pick,
    .tick = aging_tick,
    .preempts = aging_preempts,
    .time_slice = aging_time_slice,
};
