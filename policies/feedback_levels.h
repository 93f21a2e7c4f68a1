/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_FEEDBACK_LEVELS_H
#define SCHEDLAB_FEEDBACK_LEVELS_H

#include "level_lists.h"
#include "policy.h"

/*
 * The levels of a feedback queue, with slices, allotments and the boost; level 0 is the lowest. The
 * policy decides what running costs a task, and what it gets for blocking.
 *
 * The boost costs O(levels) for each queue, regardless of the number of tasks, blocked ones
 * included. Time is cut into epochs. A task's level is valid in the epoch of its setting; in a
 * later one it is the top. When a queue finds that an epoch has begun, it moves each level's whole
 * list to the end of the top's. All other operations are O(1). The order after a boost is: the
 * tasks that waited at the top; the tasks that waited below, level by level; then the running task.
 * The running task's turn ends, and the tick that ends now is forgotten like all earlier ones. (The
 * displayed task->level is updated when the task is picked.)
 *
 * A policy's queue state begins with a feedback_queue, its task state with a feedback_task, its
 * tunables with FEEDBACK_TUNABLES.
 */

#define FEEDBACK_LEVELS_MAX 8

enum {
    FEEDBACK_LEVELS,
    FEEDBACK_SLICE, /* of level 0; the other levels follow */
    FEEDBACK_ALLOTMENT =
        FEEDBACK_SLICE + FEEDBACK_LEVELS_MAX, /* of level 0; the other levels follow */
    FEEDBACK_BOOST = FEEDBACK_ALLOTMENT + FEEDBACK_LEVELS_MAX,
    FEEDBACK_TUNABLE_COUNT,
};

#define FEEDBACK_SLICE_OF(level, ticks)                                                            \
    [FEEDBACK_SLICE + level] = {"slice_" #level, "ticks of a turn; 0: no limit", 0, ticks, 100000}
#define FEEDBACK_ALLOTMENT_OF(level, ticks)                                                        \
    [FEEDBACK_ALLOTMENT + level] = {                                                               \
        "allotment_" #level, "ticks at this level before demotion; 0: no limit", 0, ticks, 100000}
/* clang-format off */
#define FEEDBACK_TUNABLES                                                                          \
    [FEEDBACK_LEVELS] = {"levels",                                                                 \
                         "number of levels, without the level for tasks with credit", 1, 4,   \
                         FEEDBACK_LEVELS_MAX},                                                     \
    [FEEDBACK_SLICE] = {"slice_0", "ticks of a turn at the lowest level; 0: no limit", 0, 32,      \
                        100000},                                                                   \
    FEEDBACK_SLICE_OF(1, 8), FEEDBACK_SLICE_OF(2, 4), FEEDBACK_SLICE_OF(3, 2),                     \
    FEEDBACK_SLICE_OF(4, 1), FEEDBACK_SLICE_OF(5, 1), FEEDBACK_SLICE_OF(6, 1),                     \
    FEEDBACK_SLICE_OF(7, 1),                                                                       \
    [FEEDBACK_ALLOTMENT] = {"allotment_0", "no effect: there is no level below", 0, 0, 0},         \
    FEEDBACK_ALLOTMENT_OF(1, 32), FEEDBACK_ALLOTMENT_OF(2, 16), FEEDBACK_ALLOTMENT_OF(3, 8),       \
    FEEDBACK_ALLOTMENT_OF(4, 4), FEEDBACK_ALLOTMENT_OF(5, 4), FEEDBACK_ALLOTMENT_OF(6, 4),         \
    FEEDBACK_ALLOTMENT_OF(7, 4),                                                                   \
    [FEEDBACK_BOOST] = {"boost", "ticks between boosts of all to the top; 0: none", 0, 480,        \
                        1000000}
/* clang-format on */

/* Times are in nanoseconds. */
struct feedback_task {
    uint64_t epoch; /* epoch when its level was set; UINT64_MAX: none, it starts at the top */
    uint64_t allotment_used;
    uint64_t slice_used;
    uint32_t level; /* serving level: its base, or temporarily one above all levels */
    uint32_t base;
    bool turn_over; /* for a running task: it goes to the end of the list */
};
typedef struct feedback_task SHARED_MEMORY feedback_task_t;

struct feedback_queue {
    struct level_counts counts; /* by rank: see feedback_rank() */
    struct level_lists lists;   /* waiting tasks */
    uint64_t epoch;
    uint64_t next_epoch; /* when it begins */
};
typedef struct feedback_queue SHARED_MEMORY feedback_queue_t;

_Static_assert(FEEDBACK_LEVELS_MAX < RANKS_MAX, "each level has a rank, and so has the one above");

POLICY_FUNCTION feedback_task_t *feedback_task_of(const task_t *task)
{
    return STATE_OF(task, struct feedback_task);
}

POLICY_FUNCTION feedback_queue_t *feedback_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct feedback_queue);
}

POLICY_FUNCTION uint32_t feedback_top(const scheduler_t *scheduler)
{
    return (uint32_t)scheduler->tunable[FEEDBACK_LEVELS] - 1;
}

POLICY_FUNCTION uint64_t feedback_ticks(const scheduler_t *scheduler, uint32_t tunable)
{
    return (uint64_t)scheduler->tunable[tunable] * scheduler->tick_ns;
}

/* Returns a level's place in the order of service: the highest level comes first. */
POLICY_FUNCTION uint32_t feedback_rank(uint32_t level)
{
    return FEEDBACK_LEVELS_MAX - level;
}

/* ---- the boost ---- */

/* Begins an epoch: boosts the waiting tasks. */
POLICY_RARE_FUNCTION void feedback_begin_epoch(run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    feedback_queue_t *state = feedback_queue_of(queue);
    uint64_t length = feedback_ticks(scheduler, FEEDBACK_BOOST);
    uint32_t top = feedback_top(scheduler);
    state->epoch = length > 0 ? queue->now / length : 0;
    state->next_epoch = length > 0 ? (state->epoch + 1) * length : UINT64_MAX;
    for (uint32_t level = top; level > 0 && LOOP_GUARD; level--) {
        uint32_t rank = feedback_rank(level - 1);
        level_lists_move(&state->lists, &state->counts, rank, feedback_rank(top),
                         state->counts.waiting[rank]);
    }
}

/* Updates the queue to its current time. Each hook that needs the lists calls it first. */
POLICY_FUNCTION void feedback_boost_queue(run_queue_t *queue)
{
    if (queue->now >= feedback_queue_of(queue)->next_epoch)
        feedback_begin_epoch(queue);
}

/* Returns the task's serving level now, including a boost that no hook has applied yet. */
POLICY_FUNCTION uint32_t feedback_level(const run_queue_t *queue, const task_t *task)
{
    const feedback_task_t *state = feedback_task_of(task);
    bool boosted = state->epoch != feedback_queue_of(queue)->epoch;
    uint32_t top = feedback_top(queue->scheduler);
    return boosted && state->level < top ? top : state->level;
}

/* A hook, level(). A boost raises all waiting tasks, except tasks above the top level. */
POLICY_FUNCTION uint64_t feedback_level_now(const scheduler_t *scheduler, const task_t *task,
                                            uint64_t now)
{
    uint64_t length = feedback_ticks(scheduler, FEEDBACK_BOOST);
    uint64_t top = feedback_top(scheduler);
    bool boosted = length > 0 && task->queued_since / length != now / length;
    return boosted && task->level < top ? top : task->level;
}

/* Applies a boost that the task has missed. Returns false if there was none. */
POLICY_FUNCTION bool feedback_boost_task(const run_queue_t *queue, task_t *task)
{
    feedback_task_t *state = feedback_task_of(task);
    uint64_t epoch = feedback_queue_of(queue)->epoch;
    if (state->epoch == epoch)
        return false;
    state->level = feedback_level(queue, task);
    state->base = feedback_top(queue->scheduler);
    state->epoch = epoch;
    state->allotment_used = 0;
    state->slice_used = 0;
    state->turn_over = true;
    task->level = state->level;
    return true;
}

/* ---- slices and allotments ---- */

/* Returns true if less than half a tick of a limit remains. Only ticks end turns. */
POLICY_FUNCTION bool feedback_used_up(const scheduler_t *scheduler, uint32_t limit, uint64_t used)
{
    return scheduler->tunable[limit] > 0 &&
           used + scheduler->tick_ns / 2 >= feedback_ticks(scheduler, limit);
}

/* Returns the index of its slice among the tunables; above all levels the top's slice applies. */
POLICY_FUNCTION uint32_t feedback_slice(const scheduler_t *scheduler, const feedback_task_t *state)
{
    uint32_t top = feedback_top(scheduler);
    return FEEDBACK_SLICE + (state->level < top ? state->level : top);
}

POLICY_FUNCTION void feedback_sink_to(feedback_task_t *state, uint32_t base)
{
    state->level = state->base = base;
    state->turn_over = true;
}

/* Charges a task for its use of its slice and of its allotment. */
POLICY_FUNCTION void feedback_pay(const scheduler_t *scheduler, feedback_task_t *state,
                                  uint64_t slice, uint64_t allotment)
{
    state->slice_used += slice;
    state->allotment_used += allotment;
    /* Level 0 has no allotment. */
    if (feedback_used_up(scheduler, FEEDBACK_ALLOTMENT + state->base, state->allotment_used)) {
        feedback_sink_to(state, state->base - 1);
        state->allotment_used = 0;
    }
    if (feedback_used_up(scheduler, feedback_slice(scheduler, state), state->slice_used))
        state->turn_over = true;
}

/* ---- waiting ---- */

/* Queues the task in a queue that is in its epoch. With `goes_on` the task resumes its turn as
 * soon as its level is served. */
POLICY_FUNCTION void feedback_add(run_queue_t *queue, task_t *task, bool goes_on)
{
    const feedback_task_t *state = feedback_task_of(task);
    task->level = state->level;
    level_lists_add(&feedback_queue_of(queue)->lists, level_counts_of(queue), task,
                    feedback_rank(state->level), goes_on);
}

/* A hook. The queue is in its epoch: a task that was queued before the last boost is in the
 * top's list. */
POLICY_FUNCTION void feedback_dequeue(run_queue_t *queue, task_t *task)
{
    const feedback_task_t *state = feedback_task_of(task);
    feedback_boost_task(queue, task);
    level_lists_remove(&feedback_queue_of(queue)->lists, level_counts_of(queue), task,
                       feedback_rank(state->level));
}

/* Takes out the next task that may run on `cpu`, or returns null if none waits. */
static inline __attribute__((always_inline, unused)) task_t *feedback_take(run_queue_t *queue,
                                                                           uint32_t cpu)
{
    feedback_boost_queue(queue);
    task_t *task =
        level_lists_take_first_on(&feedback_queue_of(queue)->lists, level_counts_of(queue), cpu);
    if (task)
        feedback_boost_task(queue, task);
    return task;
}

/* A hook, steal(). Other CPUs read the counts, which a boost changes, so the boost is applied
 * when a task is taken. (Inline: BPF allows at most eight nested calls.) */
static inline __attribute__((always_inline, unused)) task_t *feedback_steal(run_queue_t *queue,
                                                                            uint32_t cpu)
{
    const level_lists_t *lists = &feedback_queue_of(queue)->lists;
    bool has_task = level_lists_first_on(lists, level_counts_of(queue), cpu) != NULL;
    return has_task ? feedback_take(queue, cpu) : NULL;
}

/* The task gets the CPU. */
POLICY_FUNCTION void feedback_begin_turn(run_queue_t *queue, task_t *task)
{
    feedback_task_t *state = feedback_task_of(task);
    state->turn_over = false;
    level_counts_of(queue)->running = feedback_rank(state->level);
    queue->remark = state->level;
}

/* A hook. */
POLICY_FUNCTION uint64_t feedback_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    int64_t slice = scheduler->tunable[feedback_slice(scheduler, feedback_task_of(task))];
    return slice > 0 ? (uint64_t)slice : UINT64_MAX;
}

#endif
