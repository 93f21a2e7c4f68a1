/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * A multi-level feedback queue (Corbató 1962) to prove the policy interface with:
 * slices and allotments for each level, and a boost of all tasks, blocked ones
 * too, that costs the same however many there are.
 *
 * The boost: time is cut into epochs. A task's level counts in the epoch in which
 * it was set; in a later one it is the top level. When a queue finds that an
 * epoch has begun, it moves each level's list, as a whole, to the end of the top.
 */

#include "policies/placement.h"
#include "policies/policy.h"
#include "policies/task_list.h"

enum { MLFQ_LEVELS = 4, MLFQ_TOP = MLFQ_LEVELS - 1 };

enum {
    MLFQ_SLICE,                                /* of level 0; the others follow */
    MLFQ_ALLOTMENT = MLFQ_SLICE + MLFQ_LEVELS, /* likewise */
    MLFQ_BOOST = MLFQ_ALLOTMENT + MLFQ_LEVELS,
    MLFQ_KEEP,
    MLFQ_TUNABLES,
};

static const struct tunable mlfq_tunables[] = {
    {"slice_0", "ticks of a turn at the lowest level", 1, 32, 100000},
    {"slice_1", "ticks of a turn", 1, 8, 100000},
    {"slice_2", "ticks of a turn", 1, 4, 100000},
    {"slice_3", "ticks of a turn at the top level", 1, 2, 100000},
    {"allotment_0", "has no effect", 0, 0, 0},
    {"allotment_1", "ticks at this level, then one down", 1, 32, 100000},
    {"allotment_2", "ticks at this level, then one down", 1, 16, 100000},
    {"allotment_3", "ticks at this level, then one down", 1, 8, 100000},
    {"boost", "ticks between boosts of all to the top; 0: none", 0, 480, 1000000},
    {"keep", "1: allotments are counted over all stays at a level; 0: anew each time", 0, 1, 1},
};

static const struct preset mlfq_presets[] = {
    {"four-quanta",
     "quanta 1, 2, 4 and no limit; no boost",
     {{"slice_0", 100000},
      {"slice_1", 4},
      {"slice_2", 2},
      {"slice_3", 1},
      {"allotment_1", 4},
      {"allotment_2", 2},
      {"allotment_3", 1},
      {"boost", 0},
      {"keep", 0}}},
};

struct mlfq_task {
    uint64_t epoch; /* in which the rest was written */
    uint32_t level;
    uint32_t allotment_used;
    uint32_t slice_used;
};

struct mlfq_queue {
    struct task_list level[MLFQ_LEVELS];
    uint64_t epoch;
    uint32_t occupied; /* a bit for each level that is not empty */
};

_Static_assert(sizeof(struct mlfq_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct mlfq_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(sizeof(mlfq_tunables) / sizeof(mlfq_tunables[0]) == MLFQ_TUNABLES, "all are there");

typedef struct mlfq_task SHARED_MEMORY mlfq_task_t;
typedef struct mlfq_queue SHARED_MEMORY mlfq_queue_t;

POLICY_FUNCTION mlfq_task_t *mlfq_of(const task_t *task)
{
    return STATE_OF(task, struct mlfq_task);
}

POLICY_FUNCTION uint64_t mlfq_epoch(const run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t length = (uint64_t)scheduler->tunable[MLFQ_BOOST] * scheduler->tick_ns;
    return length > 0 ? queue->now / length : 0;
}

/* Moves the whole list to the end of the top level's. */
POLICY_FUNCTION void mlfq_lift(mlfq_queue_t *state, uint32_t level)
{
    task_list_t *list = &state->level[level & 3];
    task_list_t *top = &state->level[MLFQ_TOP];
    if (!list->first)
        return;
    list->first->previous = top->last;
    if (top->last)
        top->last->next = list->first;
    else
        top->first = list->first;
    top->last = list->last;
    list->first = NULL;
    list->last = NULL;
}

POLICY_FUNCTION void mlfq_boost_queue(run_queue_t *queue)
{
    mlfq_queue_t *state = STATE_OF(queue, struct mlfq_queue);
    uint64_t epoch = mlfq_epoch(queue);
    if (epoch == state->epoch)
        return;
    state->epoch = epoch;
    for (uint32_t level = MLFQ_TOP; level > 0 && LOOP_GUARD; level--)
        mlfq_lift(state, level - 1);
    state->occupied = state->level[MLFQ_TOP].first ? 1u << MLFQ_TOP : 0;
}

/* Lets the task take part in a boost that it has not seen. */
POLICY_FUNCTION void mlfq_boost_task(const run_queue_t *queue, task_t *task)
{
    mlfq_task_t *state = mlfq_of(task);
    uint64_t epoch = STATE_OF(queue, struct mlfq_queue)->epoch;
    if (state->epoch != epoch) {
        state->epoch = epoch;
        state->level = MLFQ_TOP;
        state->allotment_used = 0;
        state->slice_used = 0;
    }
    task->level = state->level;
}

POLICY_FUNCTION void mlfq_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    (void)scheduler, (void)parent;
    mlfq_of(task)->epoch = UINT64_MAX;
}

POLICY_FUNCTION void mlfq_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    mlfq_queue_t *state = STATE_OF(queue, struct mlfq_queue);
    mlfq_boost_queue(queue);
    mlfq_boost_task(queue, task);
    mlfq_task_t *own = mlfq_of(task);
    task_list_t *list = &state->level[own->level & 3];
    if (reason == ENQUEUE_PREEMPTED) {
        task_list_insert_before(list, task, list->first);
    } else {
        own->slice_used = 0;
        if (!queue->scheduler->tunable[MLFQ_KEEP])
            own->allotment_used = 0;
        task_list_append(list, task);
    }
    state->occupied |= 1u << (own->level & 3);
}

/* The queue is in its epoch: what was enqueued before the last boost is at the top. */
POLICY_FUNCTION void mlfq_dequeue(run_queue_t *queue, task_t *task)
{
    mlfq_queue_t *state = STATE_OF(queue, struct mlfq_queue);
    mlfq_boost_task(queue, task);
    uint32_t level = mlfq_of(task)->level & 3;
    task_list_remove(&state->level[level], task);
    if (!state->level[level].first)
        state->occupied &= ~(1u << level);
}

POLICY_FUNCTION uint32_t mlfq_highest(const mlfq_queue_t *state)
{
    uint32_t level = MLFQ_TOP;
    while (level > 0 && !(state->occupied >> level & 1) && LOOP_GUARD)
        level--;
    return level;
}

POLICY_FUNCTION task_t *mlfq_pick(run_queue_t *queue, uint32_t cpu)
{
    mlfq_queue_t *state = STATE_OF(queue, struct mlfq_queue);
    (void)cpu;
    mlfq_boost_queue(queue);
    if (!state->occupied)
        return NULL;
    uint32_t level = mlfq_highest(state);
    task_t *task = state->level[level & 3].first;
    if (task)
        mlfq_dequeue(queue, task);
    queue->remark = level;
    return task;
}

POLICY_FUNCTION enum tick_verdict mlfq_tick(run_queue_t *queue, task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    mlfq_task_t *own = mlfq_of(task);
    mlfq_boost_queue(queue);
    mlfq_boost_task(queue, task);
    own->allotment_used++;
    own->slice_used++;
    uint32_t level = own->level & 3;
    if (level > 0 && own->allotment_used >= scheduler->tunable[MLFQ_ALLOTMENT + level]) {
        own->level--;
        own->allotment_used = 0;
        task->level = own->level;
        return TICK_PREEMPT;
    }
    if (own->slice_used >= scheduler->tunable[MLFQ_SLICE + level])
        return TICK_PREEMPT;
    return TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t mlfq_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    return (uint64_t)scheduler->tunable[MLFQ_SLICE + (mlfq_of(task)->level & 3)];
}

POLICY_FUNCTION bool mlfq_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    const mlfq_task_t *other = mlfq_of(running);
    bool boosted = other->epoch != STATE_OF(queue, struct mlfq_queue)->epoch;
    return !boosted && mlfq_of(task)->level > other->level;
}

POLICY_DEFINITION policy_test_mlfq = {
    .name = "test-mlfq",
    .meaning = "a multi-level feedback queue with allotments and boost",
    .source = "Corbató 1962; Arpaci-Dusseau 2018",
    .tunables = mlfq_tunables,
    .tunable_count = MLFQ_TUNABLES,
    .presets = mlfq_presets,
    .preset_count = sizeof(mlfq_presets) / sizeof(mlfq_presets[0]),
    .enqueue = mlfq_enqueue,
    .dequeue = mlfq_dequeue,
    .pick = mlfq_pick,
    .tick = mlfq_tick,
    .time_slice = mlfq_time_slice,
    .task_init = mlfq_task_init,
    .preempts = mlfq_preempts,
};
