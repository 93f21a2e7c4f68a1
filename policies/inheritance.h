/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_INHERITANCE_H
#define SCHEDLAB_INHERITANCE_H

#include "policy.h"

/*
 * Two ways to let a task that others need finish early, so that no task of middle priority delays
 * them all (Sha, Rajkumar and Lehoczky 1990):
 *
 *   - Inheritance: while tasks wait for it, it is as urgent as the most urgent of them. If it
 *     waits itself, the inherited priority passes to the task that it waits for.
 *   - Ceilings: while it holds a lock, it is as urgent as the lock's ceiling, which is the
 *     priority of the most urgent task that ever takes the lock. On one CPU no task then
 *     waits for a lock, and deadlock is impossible.
 *
 * For policies that use the attribute `priority`. A task's `lent` is 1 more than the priority that
 * it gets this way, or 0.
 */
enum inheritance { INHERIT_NOTHING, INHERIT_FROM_WAITERS, INHERIT_CEILINGS, INHERITANCES };

#define INHERIT_MEANING "served by its own priority (0), by its waiters' too (1), by its locks' (2)"

/* Returns the task's effective priority. */
POLICY_FUNCTION int32_t inherited_priority(const task_t *task)
{
    if (task->lent == 0 || (int32_t)task->lent > task->priority)
        return task->priority;
    return (int32_t)task->lent - 1;
}

/* Costs O(n) in the number of tasks that wait for it. */
POLICY_FUNCTION uint64_t lent_by_waiters(const task_t *owner)
{
    int32_t best = PRIORITY_LOWEST + 1;
    for (const task_t *waiter = owner->first_waiter; waiter && LOOP_GUARD;
         waiter = waiter->next_waiter) {
        int32_t priority = inherited_priority(waiter);
        best = priority < best ? priority : best;
    }
    return best > PRIORITY_LOWEST ? 0 : (uint64_t)best + 1;
}

/* Recomputes the owner's inherited priority, for waiters_changed(). Returns true if its
 * effective priority changed. */
POLICY_FUNCTION bool inherit_priority(task_t *owner, int64_t how)
{
    int32_t before = inherited_priority(owner);
    owner->lent = how == INHERIT_CEILINGS ? owner->ceiling : lent_by_waiters(owner);
    return inherited_priority(owner) != before;
}

#endif
