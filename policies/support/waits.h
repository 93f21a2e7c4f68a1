/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_WAITS_H
#define SCHEDLAB_WAITS_H

/*
 * Who waits for whom, for all hosts: a task that is blocked waits for at most one
 * other, its owner, which must act before it goes on (it holds the lock, it writes to
 * the pipe). The host sees to it that one CPU at a time is here, and holds no run
 * queue's lock.
 */

#include "policies/policy.h"
#include "policies/support/wait_links.h"

/* ---- what the host defines ---- */

/* Locks the owner's queue, and there calls run_queue_waiters_changed() on behalf of CPU `here`. If
 * that returns true, an owner that is queued is queued anew and announced, and the CPU of one that
 * runs picks again. */
MECHANISM_FUNCTION void tell_owner(scheduler_t *scheduler, task_t *owner, uint32_t here);

/* ---- what happens ---- */

/* Something is different for `owner`, which may be null, and so for the task that it waits for. */
MECHANISM_FUNCTION void tell_owners(scheduler_t *scheduler, task_t *owner, uint32_t here)
{
    uint32_t left = (uint32_t)LOOP_START(OWNERS_MAX);
    for (; owner && left > 0 && LOOP_GUARD; left--) {
        tell_owner(scheduler, owner, here);
        owner = owner->waits_for;
    }
}

/* The waiter, which is blocked or about to be, waits for `owner` from now on; for no task if that
 * is null. */
MECHANISM_FUNCTION void wait_for_task(scheduler_t *scheduler, task_t *waiter, task_t *owner,
                                      uint32_t here)
{
    task_t *before = waiter->waits_for;
    if (waiter == owner) /* what it waited for is its own now */
        owner = NULL;
    if (before == owner)
        return;
    if (before) {
        unlink_waiter(waiter);
        tell_owners(scheduler, before, here);
    }
    if (owner) {
        link_waiter(waiter, owner);
        tell_owners(scheduler, owner, here);
    }
}

/* The highest ceiling of the locks that the task has: 1 more than its priority, or 0. */
MECHANISM_FUNCTION void set_task_ceiling(scheduler_t *scheduler, task_t *task, uint32_t ceiling,
                                         uint32_t here)
{
    if (task->ceiling == ceiling)
        return;
    task->ceiling = ceiling;
    tell_owners(scheduler, task, here);
}

#endif
