/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * For a kernel test: time slices in order of arrival. Tasks stay where they are forked or wake, and
 * no CPU steals, so that only push() spreads them.
 */

#include "placement.h"
#include "policy.h"
#include "task_list.h"

POLICY_FUNCTION void pusher_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)reason;
    task_list_append(STATE_OF(queue, struct task_list), task);
}

POLICY_FUNCTION void pusher_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(STATE_OF(queue, struct task_list), task);
}

POLICY_FUNCTION task_t *pusher_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    return task_list_take_first(STATE_OF(queue, struct task_list));
}

POLICY_FUNCTION enum tick_verdict pusher_tick(run_queue_t *queue, task_t *task)
{
    (void)queue, (void)task;
    return TICK_PREEMPT;
}

POLICY_FUNCTION uint64_t pusher_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler, (void)task;
    return 1;
}

POLICY_FUNCTION uint32_t pusher_place(const scheduler_t *scheduler, const task_t *task,
                                      enum enqueue_reason reason)
{
    (void)reason;
    return home_cpu_of(scheduler, task);
}

POLICY_FUNCTION uint32_t pusher_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    (void)scheduler, (void)cpu, (void)idle;
    return NO_CPU;
}

POLICY_DEFINITION policy_pusher = {
    .name = "pusher",
    .meaning = "round-robin whose tasks are only pushed",
    .source = "a test",
    .order = "The task that came first is next.",
    .enqueue = pusher_enqueue,
    .dequeue = pusher_dequeue,
    .pick = pusher_pick,
    .tick = pusher_tick,
    .time_slice = pusher_time_slice,
    .place = pusher_place,
    .balance = pusher_balance,
    .push = push_to_idle,
};
