/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_LEVEL_LISTS_H
#define SCHEDLAB_LEVEL_LISTS_H

#include "policy.h"
#include "task_list.h"

/*
 * A first-in first-out list of tasks for each level, and a bitmap of the levels
 * that are not empty. Level 0 is served first. Each operation costs the same
 * however many tasks there are. `occupied` and `waiting` are numbers that others
 * may read without the queue's lock.
 */

#define LEVEL_LISTS_MAX 16

struct level_lists {
    struct task_list list[LEVEL_LISTS_MAX];
    uint32_t waiting[LEVEL_LISTS_MAX]; /* how many are on each list */
    uint32_t occupied;                 /* a bit for each level that is not empty */
};
typedef struct level_lists SHARED_MEMORY level_lists_t;

/* The level of the lowest bit of a bitmap of levels; LEVEL_LISTS_MAX: there is none. */
POLICY_FUNCTION uint32_t first_level(uint32_t occupied)
{
    return (uint32_t)__builtin_ctz(occupied | 1u << LEVEL_LISTS_MAX);
}

/* Puts the task at the end of the level's list, or (`first`) at its head. */
POLICY_FUNCTION void level_lists_add(level_lists_t *lists, task_t *task, uint32_t level, bool first)
{
    task_list_t *list = &lists->list[level];
    task_list_insert_before(list, task, first ? list->first : NULL);
    lists->waiting[level]++;
    lists->occupied |= 1u << level;
}

POLICY_FUNCTION void level_lists_remove(level_lists_t *lists, task_t *task, uint32_t level)
{
    task_list_remove(&lists->list[level], task);
    lists->waiting[level]--;
    if (lists->waiting[level] == 0)
        lists->occupied &= ~(1u << level);
}

/* Appends the whole list of one level to that of another. */
POLICY_FUNCTION void level_lists_move(level_lists_t *lists, uint32_t from, uint32_t to)
{
    task_list_t *source = &lists->list[from];
    task_list_t *target = &lists->list[to];
    if (!source->first || from == to)
        return;
    source->first->previous = target->last;
    if (target->last)
        target->last->next = source->first;
    else
        target->first = source->first;
    target->last = source->last;
    source->first = NULL;
    source->last = NULL;
    lists->waiting[to] += lists->waiting[from];
    lists->waiting[from] = 0;
    lists->occupied |= 1u << to;
    lists->occupied &= ~(1u << from);
}

#endif
