/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * @name@
 *
 * Describe here what the policy does, and why. Now it serves tasks in order of arrival,
 * for one time slice each. docs/writing-a-policy.md shows how to turn it into another
 * policy, step by step.
 */

#include "policy.h"
#include "task_list.h"

/* Tunables, such as --set slice=5. Each has a name, a description with the unit, the smallest
 * value, the default and the largest value. */
enum { @PREFIX@_SLICE };

static const struct tunable @prefix@_tunables[] = {
    [@PREFIX@_SLICE] = {"slice", "ticks of a task's turn", 1, 1, 1000},
};

/* The policy's state of a task, zeroed at first. */
struct @prefix@_task {
    uint32_t ticks; /* used ticks of the time slice */
};

/* The policy's state of a run queue. Each CPU has one. */
struct @prefix@_queue {
    struct task_list waiting;
};

_Static_assert(sizeof(struct @prefix@_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct @prefix@_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

/* Inserts a task that is ready to run. `reason` distinguishes new tasks, woken tasks, tasks with
 * an expired time slice, and others. This policy appends them all, with a new time slice. */
POLICY_FUNCTION void @prefix@_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)reason;
    STATE_OF(task, struct @prefix@_task)->ticks = 0;
    task_list_append(&STATE_OF(queue, struct @prefix@_queue)->waiting, task);
}

/* Removes a waiting task that will not run, for example because it was killed. */
POLICY_FUNCTION void @prefix@_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct @prefix@_queue)->waiting, task);
}

/* Returns the next task of the CPU. Null only if no waiting task may run there. */
POLICY_FUNCTION task_t *@prefix@_pick(run_queue_t *queue, uint32_t cpu)
{
    task_list_t *waiting = &STATE_OF(queue, struct @prefix@_queue)->waiting;
    return task_list_take_first_on(waiting, cpu);
}

/* Decides after each tick whether the task continues. */
POLICY_FUNCTION enum tick_verdict @prefix@_tick(run_queue_t *queue, task_t *task)
{
    int64_t slice = queue->scheduler->tunable[@PREFIX@_SLICE];
    uint32_t ticks = ++STATE_OF(task, struct @prefix@_task)->ticks;
    return ticks >= slice ? TICK_PREEMPT : TICK_CONTINUE;
}

/* Returns the length of the task's time slice in ticks, for display only. */
POLICY_FUNCTION uint64_t @prefix@_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[@PREFIX@_SLICE];
}

/* policy.h has more hooks: preempts() lets a woken task preempt at once, place() and balance()
 * distribute tasks over CPUs, and shares_by() names the attribute that determines shares. `reads`
 * names all attributes that the policy reads. */
POLICY_DEFINITION policy_@prefix@ = {
    .name = "@name@",
    .meaning = "first come, first served, one slice each",
    .source = "@source@",
    .order = "The task that came first is next.",
    .remark = "next in turn",
    .cost = COST_CONSTANT,
    .tunables = @prefix@_tunables,
    .tunable_count = sizeof(@prefix@_tunables) / sizeof(@prefix@_tunables[0]),
    .task_bytes = sizeof(struct @prefix@_task),
    .enqueue = @prefix@_enqueue,
    .dequeue = @prefix@_dequeue,
    .pick = @prefix@_pick,
    .tick = @prefix@_tick,
    .time_slice = @prefix@_time_slice,
};
