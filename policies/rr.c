/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Round-robin: each task runs for one time slice, then the next task runs.
 *
 * By default each CPU has a first-in first-out run queue. A task that is new,
 * wakes, yields or has used up its slice goes to the end. A preempted task
 * resumes its slice at the front. Every operation is O(1).
 *
 * Preset `table-scan`: the loop of a teaching kernel over its process table.
 * One queue serves all CPUs. Each CPU takes the next runnable task, in the
 * order of slots, after the task that it took last. Every tick ends a turn.
 * Finding the task costs O(n), as in such a kernel.
 */

#include "placement.h"
#include "policy.h"
#include "task_list.h"

enum { RR_SLICE, RR_TABLE_SCAN };

static const struct tunable rr_tunables[] = {
    [RR_SLICE] = {"slice", "ticks of a task's time slice", 1, 1, 1000},
    [RR_TABLE_SCAN] = {"table_scan", "1: one queue for all CPUs, in the order of process slots", 0,
                       0, 1},
};

static const struct preset rr_presets[] = {
    {"table-scan", "as a loop over the process table picks", {{"table_scan", 1}}},
};

struct rr_task {
    uint32_t ticks; /* used of the slice */
};

struct rr_queue {
    struct task_list tasks;
    uint32_t next_slot[POLICY_CPUS_MAX]; /* table scan: the slot where each CPU's search starts */
};

_Static_assert(sizeof(struct rr_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct rr_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

/* Returns the first task at `slot` or after it, or null. The list is ordered by slots. */
POLICY_FUNCTION task_t *rr_first_from(run_queue_t *queue, uint32_t slot)
{
    task_t *task = STATE_OF(queue, struct rr_queue)->tasks.first;
    while (task && task->slot < slot && LOOP_GUARD)
        task = task->next;
    return task;
}

POLICY_FUNCTION void rr_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    struct rr_queue SHARED_MEMORY *state = STATE_OF(queue, struct rr_queue);
    bool goes_on = reason == ENQUEUE_PREEMPTED;
    if (!goes_on)
        STATE_OF(task, struct rr_task)->ticks = 0;
    if (queue->scheduler->tunable[RR_TABLE_SCAN]) {
        task_list_insert_before(&state->tasks, task, rr_first_from(queue, task->slot));
        if (goes_on)
            state->next_slot[task->cpu] = task->slot;
    } else {
        task_list_insert_before(&state->tasks, task, goes_on ? state->tasks.first : NULL);
    }
}

POLICY_FUNCTION void rr_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct rr_queue)->tasks, task);
}

POLICY_FUNCTION task_t *rr_take(struct rr_queue SHARED_MEMORY *state, task_t *task, uint32_t cpu)
{
    state->next_slot[cpu] = task->slot + 1;
    task_list_remove(&state->tasks, task);
    return task;
}

/* Takes the next task, starting with `task`, that may run on `cpu`. Returns null if there is
 * none. */
POLICY_RARE_FUNCTION task_t *rr_take_next_on(run_queue_t *queue, task_t *task, uint32_t cpu)
{
    struct rr_queue SHARED_MEMORY *state = STATE_OF(queue, struct rr_queue);
    task = task_list_next_on(task, cpu);
    if (!task)
        task = task_list_first_on(&state->tasks, cpu);
    return task ? rr_take(state, task, cpu) : NULL;
}

POLICY_RARE_FUNCTION task_t *rr_pick_from_table(run_queue_t *queue, uint32_t cpu)
{
    struct rr_queue SHARED_MEMORY *state = STATE_OF(queue, struct rr_queue);
    task_t *task = rr_first_from(queue, state->next_slot[cpu]);
    if (!task)
        task = state->tasks.first;
    if (!task)
        return NULL;
    return task_may_run_on(task, cpu) ? rr_take(state, task, cpu)
                                      : rr_take_next_on(queue, task, cpu);
}

POLICY_FUNCTION task_t *rr_pick(run_queue_t *queue, uint32_t cpu)
{
    if (queue->scheduler->tunable[RR_TABLE_SCAN])
        return rr_pick_from_table(queue, cpu);
    return task_list_take_first_on(&STATE_OF(queue, struct rr_queue)->tasks, cpu);
}

POLICY_FUNCTION enum tick_verdict rr_tick(run_queue_t *queue, task_t *task)
{
    struct rr_task SHARED_MEMORY *state = STATE_OF(task, struct rr_task);
    state->ticks++;
    return state->ticks >= queue->scheduler->tunable[RR_SLICE] ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t rr_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[RR_SLICE];
}

POLICY_FUNCTION bool rr_shared_queue(const scheduler_t *scheduler)
{
    return scheduler->tunable[RR_TABLE_SCAN] != 0;
}

POLICY_DEFINITION policy_rr = {
    .name = "rr",
    .meaning = "round-robin: one slice each, first come, first served",
    .source = "Kleinrock 1964; the table scan as in teaching kernels of the 1970s and since",
    .order = "The task that came first is next.",
    .remark = "next in turn",
    .cost = COST_CONSTANT,
    .reads = "",
    .tunables = rr_tunables,
    .tunable_count = sizeof(rr_tunables) / sizeof(rr_tunables[0]),
    .presets = rr_presets,
    .preset_count = sizeof(rr_presets) / sizeof(rr_presets[0]),
    .rounds = 2,
    .task_bytes = sizeof(struct rr_task),
    .enqueue = rr_enqueue,
    .dequeue = rr_dequeue,
    .pick = rr_pick,
    .tick = rr_tick,
    .time_slice = rr_time_slice,
    .shared_queue = rr_shared_queue,
};
