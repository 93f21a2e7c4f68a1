/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_WAIT_LINKS_H
#define SCHEDLAB_WAIT_LINKS_H

/* The links between waiting tasks and their owners (waits.h). Only one CPU at a time may run
 * this code. */

#include "policies/policy.h"
#include "policies/support/mechanism.h"

/* The longest chain of owners that wait for others. The limit also ends the walk if tasks wait
 * for each other in a ring. */
#define OWNERS_MAX 32

MECHANISM_FUNCTION void link_waiter(task_t *waiter, task_t *owner)
{
    waiter->waits_for = owner;
    waiter->previous_waiter = NULL;
    waiter->next_waiter = owner->first_waiter;
    if (owner->first_waiter)
        owner->first_waiter->previous_waiter = waiter;
    owner->first_waiter = waiter;
}

MECHANISM_FUNCTION void unlink_waiter(task_t *waiter)
{
    if (waiter->previous_waiter)
        waiter->previous_waiter->next_waiter = waiter->next_waiter;
    else
        waiter->waits_for->first_waiter = waiter->next_waiter;
    if (waiter->next_waiter)
        waiter->next_waiter->previous_waiter = waiter->previous_waiter;
    waiter->waits_for = NULL;
    waiter->next_waiter = NULL;
    waiter->previous_waiter = NULL;
}

/* Removes all waiters of `owner`: it ends, or the policy does. */
MECHANISM_FUNCTION void drop_waiters(task_t *owner)
{
    while (owner->first_waiter && LOOP_GUARD)
        unlink_waiter(owner->first_waiter);
}

#endif
