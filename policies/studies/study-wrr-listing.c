/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Preset `listing`: what study 5's listings 4 and 5 do with Linux's list of fair tasks.
 *
 * Listing 4 picks the task after the last picked one in the list. Listing 5 passes the picked task
 * to set_next_task(), which in Linux moves it to the front of the list. So the task that ran before
 * is after it, and is next. Of tasks that always compute, two alternate, and the others starve
 * until one of the two leaves. New and woken tasks enter at the front; so a woken task waits for
 * one turn.
 *
 * Linux's rule for fair tasks ends turns, not the listing: its weights have no effect. Here a
 * turn has `slice` ticks. Two things differ. The study's pointer is shared by all CPUs; here each
 * queue has one. And in Linux a task that blocks leaves the list with a link to itself, so that the
 * pointer that names it picks it again, although it sleeps. Here the pointer moves on.
 */

#include "policies/placement.h"
#include "policies/policy.h"
#include "policies/task_list.h"

enum { LISTING_SLICE };

static const struct tunable study_wrr_listing_tunables[] = {
    [LISTING_SLICE] = {"slice", "ticks of a turn", 1, 1, 1000},
};

static const struct preset study_wrr_listing_presets[] = {
    {"listing",
     "a picked task moves to the front of the list, as listings 4 and 5 in Linux (study 5)",
     {{NULL, 0}}},
};

struct listing_task {
    uint32_t ticks; /* used of the turn */
};

struct listing_queue {
    struct task_list tasks; /* without the running task */
    task_t *next; /* the task after the running one, or after its last place; null: the first */
};

_Static_assert(sizeof(struct listing_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct listing_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct listing_queue SHARED_MEMORY listing_queue_t;

POLICY_FUNCTION listing_queue_t *listing_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct listing_queue);
}

/* A task that ran returns to its place, before the pointer; others enter at the front. */
POLICY_FUNCTION bool listing_returns(enum enqueue_reason reason)
{
    return reason == ENQUEUE_PREEMPTED || reason == ENQUEUE_EXPIRED || reason == ENQUEUE_YIELDED;
}

POLICY_FUNCTION void listing_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    listing_queue_t *state = listing_queue_of(queue);
    task_t *after = listing_returns(reason) ? state->next : state->tasks.first;
    task_list_insert_before(&state->tasks, task, after);
    if (reason == ENQUEUE_PREEMPTED)
        state->next = task;
    else
        STATE_OF(task, struct listing_task)->ticks = 0;
}

POLICY_FUNCTION void listing_dequeue(run_queue_t *queue, task_t *task)
{
    listing_queue_t *state = listing_queue_of(queue);
    if (state->next == task)
        state->next = task->next;
    task_list_remove(&state->tasks, task);
}

POLICY_FUNCTION task_t *listing_pick(run_queue_t *queue, uint32_t cpu)
{
    listing_queue_t *state = listing_queue_of(queue);
    task_t *task = state->next ? state->next : state->tasks.first;
    if (task && !task_may_run_on(task, cpu))
        task = task_list_first_on(&state->tasks, cpu);
    if (!task)
        return NULL;
    task_list_remove(&state->tasks, task);
    state->next = state->tasks.first; /* it moves to the front: all others follow it */
    return task;
}

POLICY_FUNCTION enum tick_verdict listing_tick(run_queue_t *queue, task_t *task)
{
    struct listing_task SHARED_MEMORY *state = STATE_OF(task, struct listing_task);
    state->ticks++;
    bool over = state->ticks >= queue->scheduler->tunable[LISTING_SLICE];
    return over ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t listing_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[LISTING_SLICE];
}

POLICY_DEFINITION policy_study_wrr_listing = {
    .name = "wrr",
    .meaning = "the list and the pointer of study 5's listings, as Linux moves its tasks",
    .source = "Liu and Yang 2026, with the list of Linux 5.15's fair class",
    .order =
        "The task after the running one in the list is next; a picked task moves to the front.",
    .remark = "next in the list",
    .cost = COST_CONSTANT,
    .reads = "",
    .tunables = study_wrr_listing_tunables,
    .tunable_count = sizeof(study_wrr_listing_tunables) / sizeof(study_wrr_listing_tunables[0]),
    .presets = study_wrr_listing_presets,
    .preset_count = sizeof(study_wrr_listing_presets) / sizeof(study_wrr_listing_presets[0]),
    .task_bytes = sizeof(struct listing_task),
    .enqueue = listing_enqueue,
    .dequeue = listing_dequeue,
    .pick = listing_pick,
    .tick = listing_tick,
    .time_slice = listing_time_slice,
};
