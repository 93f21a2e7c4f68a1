/* SPDX-License-Identifier: MIT */

/*
 * A feedback queue of three levels. A task is demoted when it has used its allowance, in one
 * turn or several: sleeping does not reset it. A periodic boost moves every task to the top.
 */

#include "policy.h"
#include "task_list.h"

enum { LEVELS = 3 };
enum { FEEDBACK_BOOST };

static const struct tunable feedback_tunables[] = {
    [FEEDBACK_BOOST] = {"boost", "ticks from one lift of all tasks to the next", 1, 100, 1000000},
};

struct feedback_task {
    uint64_t level;
    uint64_t used;  /* ns of what its level allows, before it was picked */
    uint64_t began; /* its run time when it was picked */
    uint64_t lifts; /* count at its last boost */
};

struct feedback_queue {
    struct task_list level[LEVELS];
    uint64_t lifts;
};

/* One tick at level 0, two at level 1, and at the last level no limit. */
/* To do: queue the task at its level, and store it in task->level. */
POLICY_FUNCTION void feedback_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)reason;
    task_list_append(&STATE_OF(queue, struct feedback_queue)->level[0], task);
}

POLICY_FUNCTION void feedback_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct feedback_queue)->level[task->level], task);
}

/* To do: find the highest level with a waiting task. */
POLICY_FUNCTION task_t *feedback_pick(run_queue_t *queue, uint32_t cpu)
{
    return task_list_take_first_on(&STATE_OF(queue, struct feedback_queue)->level[0], cpu);
}

/* To do: end the turn when the task has used its allowance, and at a boost. */
POLICY_FUNCTION enum tick_verdict feedback_tick(run_queue_t *queue, task_t *task)
{
    (void)queue;
    (void)task;
    return TICK_PREEMPT;
}

POLICY_FUNCTION uint64_t feedback_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    return task->level + 1 < LEVELS ? task->level + 1 : 1;
}

POLICY_DEFINITION policy_feedback = {
    .name = "feedback",
    .meaning = "a feedback queue of three levels",
    .source = "Corbató and others 1962",
    .order = "The highest level goes first, and within it the task that came first.",
    .levels = "Level 0 is served first.",
    .level_order = LEVELS_LOWEST_FIRST,
    .boost = "boost",
    .tunables = feedback_tunables,
    .tunable_count = sizeof(feedback_tunables) / sizeof(feedback_tunables[0]),
    .task_bytes = sizeof(struct feedback_task),
    .enqueue = feedback_enqueue,
    .dequeue = feedback_dequeue,
    .pick = feedback_pick,
    .tick = feedback_tick,
    .time_slice = feedback_time_slice,
};
