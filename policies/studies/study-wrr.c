/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Preset `arrays`: the priority arrays that study 5 describes and wants back (its sections 2.1 and
 * 2.5), in Linux from 2002 to 2007.
 *
 * Each CPU has two arrays of lists, a list for each level, and a bitmap of the levels with waiting
 * tasks. The highest task of the active array runs next. A task that has used up its slice goes to
 * the expired array, with a new slice. When the active array is empty, the two swap. So the cost of
 * each operation is independent of the number of tasks, and each task has its slice once in each
 * round.
 *
 * The study's text gives neither the length of a slice nor the rule for tasks that are new or wake.
 * Here a level is a weight, like the study's numbers from 1 to 10. A slice is that of its WRR:
 * weight times 10 ms. A task that wakes resumes its slice in the active array, and preempts a lower
 * task. A task that is new or yields goes to the expired array, so no task gains by children or by
 * yielding.
 */

#include "policies/level_lists.h"
#include "policies/placement.h"
#include "policies/policy.h"

enum { ARRAYS_QUANTUM };

static const struct tunable study_wrr_tunables[] = {
    [ARRAYS_QUANTUM] = {"quantum_us",
                        "microseconds of a slice for each unit of weight, at least a tick", 1,
                        10000, 10000000},
};

static const struct preset study_wrr_presets[] = {
    {"arrays", "an active and an expired array of levels, heavy ones first (study 5)", {{NULL, 0}}},
};

struct arrays_task {
    int64_t left;              /* of its slice, ns */
    uint64_t charged_run_time; /* run time that is already charged; ns */
    uint32_t array;            /* while it waits: an index of its queue's arrays */
    uint32_t rank;             /* of its list while it waits */
    bool expired;              /* for a moving task: it waited in the expired array */
};

struct array {
    struct level_counts counts;
    struct level_lists lists;
};

struct arrays_queue {
    struct array array[2];
    uint32_t active;
};

_Static_assert(sizeof(struct arrays_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct arrays_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(WEIGHT_MAX <= RANKS_MAX, "each weight has a rank");

typedef struct arrays_task SHARED_MEMORY arrays_task_t;
typedef struct arrays_queue SHARED_MEMORY arrays_queue_t;
typedef struct array SHARED_MEMORY array_t;

POLICY_FUNCTION arrays_task_t *arrays_task_of(const task_t *task)
{
    return STATE_OF(task, struct arrays_task);
}

POLICY_FUNCTION arrays_queue_t *arrays_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct arrays_queue);
}

/* Nanoseconds. */
POLICY_FUNCTION int64_t arrays_slice(const scheduler_t *scheduler, const task_t *task)
{
    uint64_t quantum = (uint64_t)scheduler->tunable[ARRAYS_QUANTUM] * 1000;
    return (int64_t)(task->weight * (quantum > scheduler->tick_ns ? quantum : scheduler->tick_ns));
}

POLICY_FUNCTION void arrays_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    (void)parent;
    arrays_task_of(task)->charged_run_time = task->run_time;
    arrays_task_of(task)->left = arrays_slice(scheduler, task);
}

POLICY_FUNCTION bool arrays_goes_to_expired(const arrays_task_t *state, enum enqueue_reason reason)
{
    switch (reason) {
    case ENQUEUE_NEW:
    case ENQUEUE_EXPIRED:
    case ENQUEUE_YIELDED:
        return true;
    case ENQUEUE_MOVED:
        return state->expired;
    default:
        return false;
    }
}

POLICY_FUNCTION void arrays_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    arrays_queue_t *both = arrays_of(queue);
    arrays_task_t *state = arrays_task_of(task);
    if (reason == ENQUEUE_EXPIRED)
        state->left += arrays_slice(queue->scheduler, task);
    bool expired = arrays_goes_to_expired(state, reason);
    state->array = (both->active + expired) & 1;
    state->rank = WEIGHT_MAX - task->weight;
    state->expired = false;
    array_t *array = &both->array[state->array];
    level_lists_add(&array->lists, &array->counts, task, state->rank, reason == ENQUEUE_PREEMPTED);
}

POLICY_FUNCTION void arrays_dequeue(run_queue_t *queue, task_t *task)
{
    arrays_queue_t *both = arrays_of(queue);
    arrays_task_t *state = arrays_task_of(task);
    array_t *array = &both->array[state->array & 1];
    level_lists_remove(&array->lists, &array->counts, task, state->rank);
    state->expired = state->array != both->active;
}

POLICY_FUNCTION task_t *arrays_pick(run_queue_t *queue, uint32_t cpu)
{
    arrays_queue_t *both = arrays_of(queue);
    bool over = level_first(&both->array[both->active & 1].counts) == NO_RANK;
    array_t *array = &both->array[(both->active + over) & 1];
    task_t *task = level_lists_take_first_on(&array->lists, &array->counts, cpu);
    array = &both->array[(both->active + 1) & 1];
    if (!task && !over) /* the tasks of this round may not run on the CPU */
        task = level_lists_take_first_on(&array->lists, &array->counts, cpu);
    if (task)
        both->active ^= over;
    return task;
}

POLICY_FUNCTION void arrays_charge(task_t *task)
{
    arrays_task_t *state = arrays_task_of(task);
    state->left -= (int64_t)(task->run_time - state->charged_run_time);
    state->charged_run_time = task->run_time;
}

POLICY_FUNCTION enum tick_verdict arrays_tick(run_queue_t *queue, task_t *task)
{
    arrays_charge(task);
    bool over = arrays_task_of(task)->left <= (int64_t)(queue->scheduler->tick_ns / 2);
    return over ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION void arrays_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    (void)queue, (void)reason;
    arrays_charge(task);
}

POLICY_FUNCTION bool arrays_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    bool active = arrays_task_of(task)->array == arrays_of(queue)->active;
    return active && task->weight > running->weight;
}

POLICY_FUNCTION uint64_t arrays_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    uint64_t slice = (uint64_t)arrays_slice(scheduler, task);
    return (slice + scheduler->tick_ns / 2) / scheduler->tick_ns;
}

POLICY_FUNCTION enum share_attribute arrays_shares_by(const scheduler_t *scheduler)
{
    (void)scheduler;
    return SHARES_BY_WEIGHT;
}

POLICY_DEFINITION policy_study_wrr = {
    .name = "wrr",
    .meaning = "the priority arrays that study 5 would have back",
    .source = "Molnar 2002, as study 5 describes it",
    .order = "The heaviest task of the round is next; one that has used up its slice waits for the "
             "next round.",
    .remark = "the heaviest of this round",
    .cost = COST_CONSTANT,
    .reads = "weight",
    .tunables = study_wrr_tunables,
    .tunable_count = sizeof(study_wrr_tunables) / sizeof(study_wrr_tunables[0]),
    .presets = study_wrr_presets,
    .preset_count = sizeof(study_wrr_presets) / sizeof(study_wrr_presets[0]),
    .rounds = 4,
    .task_bytes = sizeof(struct arrays_task),
    .enqueue = arrays_enqueue,
    .dequeue = arrays_dequeue,
    .pick = arrays_pick,
    .tick = arrays_tick,
    .time_slice = arrays_time_slice,
    .task_init = arrays_task_init,
    .stopped = arrays_stopped,
    .preempts = arrays_preempts,
    .shares_by = arrays_shares_by,
};
