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

POLICY_FUNCTION void aging_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    task_list_t *line = &STATE_OF(queue, struct aging_queue)->line;
    task_list_insert_before(line, task, reason == ENQUEUE_PREEMPTED ? line->first : NULL);
}

POLICY_FUNCTION void aging_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct aging_queue)->line, task);
}

/* To do: the most urgent one. */
POLICY_FUNCTION task_t *aging_pick(run_queue_t *queue, uint32_t cpu)
{
    return task_list_take_first_on(&STATE_OF(queue, struct aging_queue)->line, cpu);
}

/* To do: preempt it if another task is as urgent. */
POLICY_FUNCTION enum tick_verdict aging_tick(run_queue_t *queue, task_t *task)
{
    (void)queue;
    (void)task;
    return TICK_CONTINUE;
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
    .time_slice = aging_time_slice,
};
