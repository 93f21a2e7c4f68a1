/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_AGING_LISTS_H
#define SCHEDLAB_AGING_LISTS_H

#include "level_lists.h"
#include "policy.h"

/*
 * Run queues of levels: waiting tasks rise (age), at a fixed cost per raise. No task is touched.
 *
 * A raise appends each level's whole list to the list of the level above. The queue counts the
 * raises so far. A task notes that count when it is queued; when it leaves, the difference gives
 * its level. Tasks that do not age wait in separate lists.
 *
 * A policy's queue state begins with an aging_queue, its task state with an aging_task.
 */
struct aging_queue {
    struct level_counts counts;         /* by rank */
    struct level_lists aging;           /* waiting tasks that age */
    struct level_lists steady;          /* waiting tasks that do not age */
    uint32_t steady_waiting[RANKS_MAX]; /* their number */
    uint64_t arrivals;
    uint64_t raised;     /* levels that the waiting tasks have risen so far */
    uint64_t next_raise; /* on the aging clock: no raise before this time */
    uint64_t aged_until;
};
typedef struct aging_queue SHARED_MEMORY aging_queue_t;

struct aging_task {
    uint64_t order;  /* of arrival in its queue */
    uint64_t raised; /* `level` is valid for this count of the queue */
    uint32_t level;  /* at the start of its wait or, if it runs, of its turn; 0 is the highest */
    bool ages;
};
typedef struct aging_task SHARED_MEMORY aging_task_t;

POLICY_FUNCTION aging_queue_t *aging_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct aging_queue);
}

POLICY_FUNCTION aging_task_t *aging_task_of(const task_t *task)
{
    return STATE_OF(task, struct aging_task);
}

POLICY_FUNCTION void aging_queue_init(run_queue_t *queue, bool ages)
{
    level_queue_init(queue);
    aging_queue_of(queue)->next_raise = ages ? 0 : UINT64_MAX;
}

/* Returns how many levels all tasks rise now: `step` for each multiple of the interval since the
 * last call. The aging clock is at `now` and never goes back. */
POLICY_FUNCTION uint64_t aging_rise(run_queue_t *queue, uint64_t now, uint64_t interval,
                                    uint64_t step)
{
    aging_queue_t *state = aging_queue_of(queue);
    uint64_t rise = (now / interval - state->aged_until / interval) * step;
    state->aged_until = now;
    state->raised += rise;
    return rise;
}

/* Returns the number of aging tasks that wait at a rank. */
POLICY_FUNCTION uint32_t aging_waiting(const aging_queue_t *state, uint32_t rank)
{
    return state->counts.waiting[rank] - state->steady_waiting[rank];
}

/* Queues the task at the end of the rank's list. With `goes_on` it precedes the others and keeps
 * its former place. */
POLICY_FUNCTION void aging_add(aging_queue_t *state, task_t *task, uint32_t rank, bool goes_on)
{
    aging_task_t *task_state = aging_task_of(task);
    if (!goes_on)
        task_state->order = state->arrivals++;
    task_state->raised = state->raised;
    task->level = task_state->level;
    level_lists_add(task_state->ages ? &state->aging : &state->steady, &state->counts, task, rank,
                    goes_on);
    state->steady_waiting[rank] += !task_state->ages;
}

/* Applies the raises that came while the task waited. The task is about to leave the queue.
 * Returns their number. */
POLICY_FUNCTION uint32_t aging_catch_up(const aging_queue_t *state, task_t *task)
{
    aging_task_t *task_state = aging_task_of(task);
    uint64_t rise = state->raised - task_state->raised;
    if (!task_state->ages || rise == 0)
        return 0;
    if (rise > task_state->level)
        rise = task_state->level;
    task_state->level -= (uint32_t)rise;
    task->level = task_state->level;
    return (uint32_t)rise;
}

/* Takes out a task that has caught up. */
POLICY_FUNCTION void aging_remove(aging_queue_t *state, task_t *task, uint32_t rank)
{
    const aging_task_t *task_state = aging_task_of(task);
    level_lists_remove(task_state->ages ? &state->aging : &state->steady, &state->counts, task,
                       rank);
    state->steady_waiting[rank] -= !task_state->ages;
}

/* Returns the task that came first; either may be null. */
POLICY_FUNCTION task_t *aging_earlier(task_t *aging, task_t *steady)
{
    if (!aging || !steady)
        return aging ? aging : steady;
    return aging_task_of(aging)->order < aging_task_of(steady)->order ? aging : steady;
}

POLICY_RARE_FUNCTION task_t *aging_search_on(const aging_queue_t *state, uint32_t cpu)
{
    task_t *task = NULL;
    uint32_t ranks = (uint32_t)LOOP_START(state->counts.occupied);
    for (; ranks && !task && LOOP_GUARD; ranks &= ranks - 1) {
        uint32_t rank = (uint32_t)__builtin_ctz(ranks);
        task = aging_earlier(task_list_next_on(state->aging.list[rank].first, cpu),
                             task_list_next_on(state->steady.list[rank].first, cpu));
    }
    return task;
}

/* Returns the first task that may run on `cpu`, aging or not, or null. */
POLICY_FUNCTION task_t *aging_first_on(const aging_queue_t *state, uint32_t cpu)
{
    uint32_t rank = level_first(&state->counts);
    if (rank == NO_RANK)
        return NULL;
    task_t *first = aging_earlier(state->aging.list[rank].first, state->steady.list[rank].first);
    return task_may_run_on(first, cpu) ? first : aging_search_on(state, cpu);
}

#endif
