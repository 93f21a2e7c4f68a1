/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * For tests of all hosts: slices of one tick in order of arrival. Each slice ends on another CPU,
 * `step` further, modulo the number of CPUs. Tasks move for no other reason.
 */

#include "policies/placement.h"
#include "policies/policy.h"
#include "policies/task_list.h"

enum { MOVER_STEP };

static const struct tunable mover_tunables[] = {
    [MOVER_STEP] = {"step", "CPUs from a task's turn to its next one", 0, 1, 8},
};

POLICY_FUNCTION void mover_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)reason;
    task_list_append(STATE_OF(queue, struct task_list), task);
}

POLICY_FUNCTION void mover_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(STATE_OF(queue, struct task_list), task);
}

POLICY_FUNCTION task_t *mover_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    return task_list_take_first(STATE_OF(queue, struct task_list));
}

POLICY_FUNCTION enum tick_verdict mover_tick(run_queue_t *queue, task_t *task)
{
    (void)queue, (void)task;
    return TICK_MOVE;
}

POLICY_FUNCTION uint64_t mover_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler, (void)task;
    return 1;
}

POLICY_FUNCTION uint32_t mover_place(const scheduler_t *scheduler, const task_t *task,
                                     enum enqueue_reason reason)
{
    uint32_t step = reason == ENQUEUE_MOVED ? (uint32_t)scheduler->tunable[MOVER_STEP] : 0;
    uint32_t home = home_cpu_of(scheduler, task);
    uint32_t next = (home + step) % scheduler->queues;
    return task_may_run_on(task, next) ? next : home;
}

POLICY_FUNCTION uint32_t mover_push(const scheduler_t *scheduler, uint32_t cpu)
{
    (void)scheduler, (void)cpu;
    return NO_CPU;
}

POLICY_FUNCTION uint32_t mover_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    (void)scheduler, (void)cpu, (void)idle;
    return NO_CPU;
}

POLICY_DEFINITION policy_mover = {
    .name = "mover",
    .meaning = "round-robin whose turns end on another CPU",
    .source = "a test",
    .order = "The task that came first is next.",
    .tunables = mover_tunables,
    .tunable_count = sizeof(mover_tunables) / sizeof(mover_tunables[0]),
    .enqueue = mover_enqueue,
    .dequeue = mover_dequeue,
    .pick = mover_pick,
    .tick = mover_tick,
    .time_slice = mover_time_slice,
    .place = mover_place,
    .push = mover_push,
    .balance = mover_balance,
};
