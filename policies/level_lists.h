/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_LEVEL_LISTS_H
#define SCHEDLAB_LEVEL_LISTS_H

#include "policy.h"
#include "task_list.h"

/*
 * Run queues of levels. A level's rank is its place in the order of service: rank 0 comes first,
 * and no other is served while a task waits there. The cost of each operation is independent of the
 * number of tasks.
 */

#define RANKS_MAX 16
#define NO_RANK   RANKS_MAX /* where no task waits or runs: after all other ranks */

/* Fields that all CPUs may read without the queue's lock: first in the queue's state. */
struct level_counts {
    uint32_t occupied;           /* one bit for each rank with a waiting task */
    uint32_t running;            /* the rank of the running task; NO_RANK: none */
    uint32_t waiting[RANKS_MAX]; /* number of tasks at each rank */
};
typedef struct level_counts SHARED_MEMORY level_counts_t;

/* A first-in first-out list of tasks for each rank. A queue may have several such sets of lists. */
struct level_lists {
    struct task_list list[RANKS_MAX];
};
typedef struct level_lists SHARED_MEMORY level_lists_t;

POLICY_FUNCTION level_counts_t *level_counts_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct level_counts);
}

/* A hook: queue_init(). */
POLICY_FUNCTION void level_queue_init(run_queue_t *queue)
{
    level_counts_of(queue)->running = NO_RANK;
}

/* Returns the rank to be served first; NO_RANK: no task waits. */
POLICY_FUNCTION uint32_t level_first(const level_counts_t *counts)
{
    return (uint32_t)__builtin_ctz(counts->occupied | 1u << NO_RANK);
}

POLICY_FUNCTION void level_counts_add(level_counts_t *counts, uint32_t rank, uint32_t tasks)
{
    counts->waiting[rank] += tasks;
    counts->occupied |= 1u << rank;
}

POLICY_FUNCTION void level_counts_remove(level_counts_t *counts, uint32_t rank, uint32_t tasks)
{
    counts->waiting[rank] -= tasks;
    if (counts->waiting[rank] == 0)
        counts->occupied &= ~(1u << rank);
}

/* Puts the task at the end of the rank's list, or (`first`) at its head. */
POLICY_FUNCTION void level_lists_add(level_lists_t *lists, level_counts_t *counts, task_t *task,
                                     uint32_t rank, bool first)
{
    task_list_t *list = &lists->list[rank];
    task_list_insert_before(list, task, first ? list->first : NULL);
    level_counts_add(counts, rank, 1);
}

POLICY_FUNCTION void level_lists_remove(level_lists_t *lists, level_counts_t *counts, task_t *task,
                                        uint32_t rank)
{
    task_list_remove(&lists->list[rank], task);
    level_counts_remove(counts, rank, 1);
}

POLICY_RARE_FUNCTION task_t *level_lists_search_on(const level_lists_t *lists, uint32_t occupied,
                                                   uint32_t cpu)
{
    task_t *task = NULL;
    uint32_t ranks = (uint32_t)LOOP_START(occupied);
    for (; ranks && !task && LOOP_GUARD; ranks &= ranks - 1)
        task = task_list_next_on(lists->list[__builtin_ctz(ranks)].first, cpu);
    return task;
}

/* Returns the first task that may run on `cpu` at the first rank that has one, or null. */
POLICY_FUNCTION task_t *level_lists_first_on(const level_lists_t *lists,
                                             const level_counts_t *counts, uint32_t cpu)
{
    uint32_t rank = level_first(counts);
    if (rank == NO_RANK)
        return NULL;
    task_t *first = lists->list[rank].first;
    return task_may_run_on(first, cpu) ? first
                                       : level_lists_search_on(lists, counts->occupied, cpu);
}

POLICY_RARE_FUNCTION task_t *level_lists_take_next_on(level_lists_t *lists, level_counts_t *counts,
                                                      uint32_t cpu)
{
    uint32_t ranks = (uint32_t)LOOP_START(counts->occupied);
    for (; ranks && LOOP_GUARD; ranks &= ranks - 1) {
        uint32_t rank = (uint32_t)__builtin_ctz(ranks);
        task_t *task = task_list_take_next_on(&lists->list[rank % RANKS_MAX], cpu);
        if (!task)
            continue;
        level_counts_remove(counts, rank % RANKS_MAX, 1);
        return task;
    }
    return NULL;
}

/* Takes out the task that level_lists_first_on() returns. (Inline: BPF allows at most eight
 * nested calls.) */
static inline __attribute__((always_inline, unused)) task_t *
level_lists_take_first_on(level_lists_t *lists, level_counts_t *counts, uint32_t cpu)
{
    uint32_t rank = level_first(counts);
    if (rank == NO_RANK)
        return NULL;
    if (!task_may_run_on(lists->list[rank].first, cpu))
        return level_lists_take_next_on(lists, counts, cpu);
    level_counts_remove(counts, rank, 1);
    return task_list_take_first(&lists->list[rank]);
}

/* Appends the whole list of one rank, which holds this many tasks, to the list of another. */
POLICY_FUNCTION void level_lists_move(level_lists_t *lists, level_counts_t *counts, uint32_t from,
                                      uint32_t to, uint32_t tasks)
{
    if (tasks == 0 || from == to)
        return;
    task_list_append_all(&lists->list[to], &lists->list[from]);
    level_counts_remove(counts, from, tasks);
    level_counts_add(counts, to, tasks);
}

#endif
