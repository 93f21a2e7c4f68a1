/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_TASK_LIST_H
#define SCHEDLAB_TASK_LIST_H

#include "policy.h"

/* A first-in first-out list of tasks; a task is on one list at most. Each operation is O(1). */
struct task_list {
    task_t *first;
    task_t *last;
};
typedef struct task_list SHARED_MEMORY task_list_t;

POLICY_FUNCTION void task_list_append(task_list_t *list, task_t *task)
{
    task->next = NULL;
    task->previous = list->last;
    if (list->last)
        list->last->next = task;
    else
        list->first = task;
    list->last = task;
}

/* Puts `task` before `next`, which is on the list, or at the end if `next` is null. */
POLICY_FUNCTION void task_list_insert_before(task_list_t *list, task_t *task, task_t *next)
{
    if (!next) {
        task_list_append(list, task);
        return;
    }
    task->next = next;
    task->previous = next->previous;
    if (next->previous)
        next->previous->next = task;
    else
        list->first = task;
    next->previous = task;
}

POLICY_FUNCTION void task_list_remove(task_list_t *list, task_t *task)
{
    if (task->previous)
        task->previous->next = task->next;
    else
        list->first = task->next;
    if (task->next)
        task->next->previous = task->previous;
    else
        list->last = task->previous;
    task->next = NULL;
    task->previous = NULL;
}

/* Moves all tasks of `source`, in their order, to the end of `list`. */
POLICY_FUNCTION void task_list_append_all(task_list_t *list, task_list_t *source)
{
    if (!source->first)
        return;
    source->first->previous = list->last;
    if (list->last)
        list->last->next = source->first;
    else
        list->first = source->first;
    list->last = source->last;
    source->first = NULL;
    source->last = NULL;
}

/* Takes out the oldest task. Returns null if the list is empty. */
POLICY_FUNCTION task_t *task_list_take_first(task_list_t *list)
{
    task_t *task = list->first;
    if (!task)
        return NULL;
    list->first = task->next;
    if (task->next)
        task->next->previous = NULL;
    else
        list->last = NULL;
    task->next = NULL;
    return task;
}

/* Returns `task` or the next one after it that may run on `cpu`, or null if there is none. */
POLICY_RARE_FUNCTION task_t *task_list_next_on(task_t *task, uint32_t cpu)
{
    while (task && !task_may_run_on(task, cpu) && LOOP_GUARD)
        task = task->next;
    return task;
}

/* Returns the oldest task that may run on `cpu`, or null if there is none. Costs a step for each
 * older task that may not. (Inline: BPF allows at most eight nested calls.) */
static inline __attribute__((always_inline, unused)) task_t *
task_list_first_on(const task_list_t *list, uint32_t cpu)
{
    task_t *first = list->first;
    return !first || task_may_run_on(first, cpu) ? first : task_list_next_on(first, cpu);
}

POLICY_RARE_FUNCTION task_t *task_list_take_next_on(task_list_t *list, uint32_t cpu)
{
    task_t *task = task_list_next_on(list->first, cpu);
    if (task)
        task_list_remove(list, task);
    return task;
}

/* Takes out the oldest task that may run on `cpu`. Returns null if there is none. */
POLICY_FUNCTION task_t *task_list_take_first_on(task_list_t *list, uint32_t cpu)
{
    const task_t *first = list->first;
    if (first && !task_may_run_on(first, cpu))
        return task_list_take_next_on(list, cpu);
    return task_list_take_first(list);
}

#endif
