/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_WAITS_H
#define SCHEDLAB_WAITS_H

/*
 * The wait graph, for all hosts: a blocked task waits for at most one other, its owner. The owner
 * must act before the task continues (it holds the lock, it writes to the pipe). The host ensures
 * that one CPU at a time runs this code, and that it holds no run queue's lock.
 */

#include "policies/policy.h"
#include "policies/support/wait_links.h"

/* ---- defined by the host ---- */

/* Locks the owner's queue, and there calls run_queue_waiters_changed() on behalf of CPU
 * `acting_cpu`. If that returns true, a queued owner is requeued and announced, and the CPU of a
 * running owner picks again. */
MECHANISM_FUNCTION void notify_owner(scheduler_t *scheduler, task_t *owner, uint32_t acting_cpu);

/* ---- changes ---- */

/* Notifies the policy of a change of `owner`, which may be null, and of the tasks along its
 * chain of owners. */
MECHANISM_FUNCTION void notify_owners(scheduler_t *scheduler, task_t *owner, uint32_t acting_cpu)
{
    uint32_t left = (uint32_t)LOOP_START(OWNERS_MAX);
    for (; owner && left > 0 && LOOP_GUARD; left--) {
        notify_owner(scheduler, owner, acting_cpu);
        owner = owner->waits_for;
    }
}

/* Records that the waiter, which is blocked or about to be, waits for `owner`; null: for no
 * task. */
MECHANISM_FUNCTION void wait_for_task(scheduler_t *scheduler, task_t *waiter, task_t *owner,
                                      uint32_t acting_cpu)
{
    task_t *before = waiter->waits_for;
    if (waiter == owner) /* it now owns what it waited for */
        owner = NULL;
    if (before == owner)
        return;
    if (before) {
        unlink_waiter(waiter);
        notify_owners(scheduler, before, acting_cpu);
    }
    if (owner) {
        link_waiter(waiter, owner);
        notify_owners(scheduler, owner, acting_cpu);
    }
}

/* Sets the highest ceiling of the task's locks: 1 more than its priority, or 0. */
MECHANISM_FUNCTION void set_task_ceiling(scheduler_t *scheduler, task_t *task, uint32_t ceiling,
                                         uint32_t acting_cpu)
{
    if (task->ceiling == ceiling)
        return;
    task->ceiling = ceiling;
    notify_owners(scheduler, task, acting_cpu);
}

#endif
