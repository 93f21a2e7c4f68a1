/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef TESTS_LINUX_POLICIES_FIFO_H
#define TESTS_LINUX_POLICIES_FIFO_H

/*
 * Hooks of a correct policy: first in, first out, with time slices of one tick. Policies that
 * include this file replace one hook, and so have one fault each.
 */

#include "policies/policy.h"
#include "policies/task_list.h"

POLICY_FUNCTION void fifo_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)reason;
    task_list_append(STATE_OF(queue, struct task_list), task);
}

POLICY_FUNCTION void fifo_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(STATE_OF(queue, struct task_list), task);
}

POLICY_FUNCTION task_t *fifo_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    return task_list_take_first(STATE_OF(queue, struct task_list));
}

POLICY_FUNCTION enum tick_verdict fifo_tick(run_queue_t *queue, task_t *task)
{
    (void)queue;
    (void)task;
    return TICK_PREEMPT;
}

POLICY_FUNCTION uint64_t fifo_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    (void)task;
    return 1;
}

#endif
