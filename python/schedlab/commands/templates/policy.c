/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * @name@
 *
 * Say here what the policy does, and why. As it stands, tasks wait in a line:
 * first come, first served, for one slice each. docs/writing-a-policy.md shows how
 * to make another policy of it, step by step.
 */

#include "policy.h"
#include "task_list.h"

/* What users may set, such as --set slice=5. Each has a name, a line that says what it means and in
 * which unit, the smallest value, the default and the largest. */
enum { @PREFIX@_SLICE };

static const struct tunable @prefix@_tunables[] = {
    [@PREFIX@_SLICE] = {"slice", "ticks of a task's turn", 1, 1, 1000},
};

/* What the policy remembers of a task. All is zero at first. */
struct @prefix@_task {
    uint32_t ticks; /* of the slice, used */
};

/* What it remembers of a run queue: each CPU has one. */
struct @prefix@_queue {
    struct task_list waiting;
};

_Static_assert(sizeof(struct @prefix@_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct @prefix@_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

/* The task can run: where does it wait? `reason` tells a new task from one that woke, one whose
 * slice is over, and so on. Here all are the same: the task goes to the end, for a new slice. */
POLICY_FUNCTION void @prefix@_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)reason;
    STATE_OF(task, struct @prefix@_task)->ticks = 0;
    task_list_append(&STATE_OF(queue, struct @prefix@_queue)->waiting, task);
}

/* The task is to wait no longer, but not to run either: it was killed, say. */
POLICY_FUNCTION void @prefix@_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct @prefix@_queue)->waiting, task);
}

/* Which task runs next on the CPU? Null only if none waits that may run there. */
POLICY_FUNCTION task_t *@prefix@_pick(run_queue_t *queue, uint32_t cpu)
{
    task_list_t *waiting = &STATE_OF(queue, struct @prefix@_queue)->waiting;
    return task_list_take_first_on(waiting, cpu);
}

/* A tick has passed: may the task go on? */
POLICY_FUNCTION enum tick_verdict @prefix@_tick(run_queue_t *queue, task_t *task)
{
    int64_t slice = queue->scheduler->tunable[@PREFIX@_SLICE];
    uint32_t ticks = ++STATE_OF(task, struct @prefix@_task)->ticks;
    return ticks >= slice ? TICK_PREEMPT : TICK_CONTINUE;
}

/* For people to see: how many ticks would the task get? */
POLICY_FUNCTION uint64_t @prefix@_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[@PREFIX@_SLICE];
}

/* More hooks are in policy.h: preempts() lets a task that wakes take over at once, place() and
 * balance() spread tasks over CPUs, shares_by() says which attribute decides shares; `reads` names
 * all attributes that decide something. */
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
