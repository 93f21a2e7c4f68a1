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
POLICY_FUNCTION uint64_t allowed(const scheduler_t *scheduler, uint64_t level)
{
    return level + 1 < LEVELS ? (level + 1) * scheduler->tick_ns : UINT64_MAX;
}

POLICY_FUNCTION uint64_t lifts_until(const run_queue_t *queue)
{
    uint64_t boost = (uint64_t)queue->scheduler->tunable[FEEDBACK_BOOST];
    return queue->now / (boost * queue->scheduler->tick_ns);
}

POLICY_FUNCTION void lift(task_t *task, uint64_t lifts)
{
    struct feedback_task SHARED_MEMORY *state = STATE_OF(task, struct feedback_task);
    state->lifts = lifts;
    state->level = 0;
    state->used = 0;
}

POLICY_FUNCTION void feedback_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    struct feedback_task SHARED_MEMORY *state = STATE_OF(task, struct feedback_task);
    if (state->lifts != lifts_until(queue))
        lift(task, lifts_until(queue));
    task->level = state->level;
    task_list_t *line = &STATE_OF(queue, struct feedback_queue)->level[state->level];
    task_list_insert_before(line, task, reason == ENQUEUE_PREEMPTED ? line->first : NULL);
}

POLICY_FUNCTION void feedback_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct feedback_queue)->level[task->level], task);
}

POLICY_FUNCTION task_t *feedback_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = NULL;
    for (uint32_t i = LOOP_START(0); i < LEVELS && !task && LOOP_GUARD; i++)
        task = task_list_take_first_on(&STATE_OF(queue, struct feedback_queue)->level[i], cpu);
    if (task)
        STATE_OF(task, struct feedback_task)->began = task->run_time;
    return task;
}

/* What it has run is charged to its level, wherever it goes then. */
POLICY_FUNCTION void feedback_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    struct feedback_task SHARED_MEMORY *state = STATE_OF(task, struct feedback_task);
    (void)reason;
    state->used += task->run_time - state->began;
    if (state->used >= allowed(queue->scheduler, state->level)) {
        state->level++;
        state->used = 0;
    }
}

/* Moves waiting tasks to the top; other tasks move when they are queued again. */
POLICY_FUNCTION void lift_all(run_queue_t *queue)
{
    struct feedback_queue SHARED_MEMORY *state = STATE_OF(queue, struct feedback_queue);
    state->lifts = lifts_until(queue);
    for (uint32_t i = LOOP_START(1); i < LEVELS && LOOP_GUARD; i++) {
        task_t *task = task_list_take_first(&state->level[i]);
        while (task && LOOP_GUARD) {
            lift(task, state->lifts);
            task->level = 0;
            task_list_append(&state->level[0], task);
            task = task_list_take_first(&state->level[i]);
        }
    }
}

POLICY_FUNCTION enum tick_verdict feedback_tick(run_queue_t *queue, task_t *task)
{
    struct feedback_task SHARED_MEMORY *state = STATE_OF(task, struct feedback_task);
    if (STATE_OF(queue, struct feedback_queue)->lifts != lifts_until(queue)) {
        lift_all(queue);
        return TICK_PREEMPT;
    }
    uint64_t used = state->used + task->run_time - state->began;
    bool over = used >= allowed(queue->scheduler, state->level);
    return over || state->level + 1 == LEVELS ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION bool feedback_preempts(run_queue_t *queue, const task_t *task,
                                       const task_t *running)
{
    (void)queue;
    return task->level < STATE_OF(running, struct feedback_task)->level;
}

POLICY_FUNCTION uint64_t feedback_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    return task->level + 1 < LEVELS ? task->level + 1 : 1;
}

/* The clock may start at any time: there is no boost at the first tick. */
POLICY_FUNCTION void feedback_queue_init(run_queue_t *queue)
{
    STATE_OF(queue, struct feedback_queue)->lifts = lifts_until(queue);
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
    .stopped = feedback_stopped,
    .preempts = feedback_preempts,
    .time_slice = feedback_time_slice,
    .queue_init = feedback_queue_init,
};
