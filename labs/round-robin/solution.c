/* SPDX-License-Identifier: MIT */

/* Round-robin: tasks wait in a queue, and each runs for `slice` ticks. */

#include "policy.h"
#include "task_list.h"

enum { TURNS_SLICE };

static const struct tunable turns_tunables[] = {
    [TURNS_SLICE] = {"slice", "ticks of a turn", 1, 1, 1000},
};

struct turns_task {
    uint32_t ticks; /* of its turn, used */
};

struct turns_queue {
    struct task_list line;
};

POLICY_FUNCTION void turns_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    task_list_t *line = &STATE_OF(queue, struct turns_queue)->line;
    /* A preempted task continues its time slice before all others. */
    if (reason == ENQUEUE_PREEMPTED) {
        task_list_insert_before(line, task, line->first);
        return;
    }
    STATE_OF(task, struct turns_task)->ticks = 0;
    task_list_append(line, task);
}

POLICY_FUNCTION void turns_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct turns_queue)->line, task);
}

POLICY_FUNCTION task_t *turns_pick(run_queue_t *queue, uint32_t cpu)
{
    return task_list_take_first_on(&STATE_OF(queue, struct turns_queue)->line, cpu);
}

POLICY_FUNCTION enum tick_verdict turns_tick(run_queue_t *queue, task_t *task)
{
    int64_t slice = queue->scheduler->tunable[TURNS_SLICE];
    uint32_t ticks = ++STATE_OF(task, struct turns_task)->ticks;
    return ticks >= slice ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t turns_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[TURNS_SLICE];
}

POLICY_DEFINITION policy_turns = {
    .name = "turns",
    .meaning = "round-robin: one slice each, first come, first served",
    .source = "Kleinrock 1964",
    .order = "The task that came first is next.",
    .tunables = turns_tunables,
    .tunable_count = sizeof(turns_tunables) / sizeof(turns_tunables[0]),
    .task_bytes = sizeof(struct turns_task),
    .enqueue = turns_enqueue,
    .dequeue = turns_dequeue,
    .pick = turns_pick,
    .tick = turns_tick,
    .time_slice = turns_time_slice,
};
