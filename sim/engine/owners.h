/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_OWNERS_H
#define SIM_ENGINE_OWNERS_H

/* The wait graph, as in kernel/process/owners.c. It is only recorded for a policy that requests
 * owners. */

#include "sim/engine/calls.h"

#include "policies/support/waits.h"
#include "sim/process.h"

MECHANISM_FUNCTION void notify_owner(scheduler_t *scheduler, task_t *owner, uint32_t acting_cpu)
{
    struct simulator *simulator = simulator_of(scheduler);
    struct process *process = process_of(owner);
    struct run_queue *queue = queue_of(simulator, owner->cpu);
    bool again = run_queue_waiters_changed(policy, queue, owner);
    hooks_called(simulator, acting_cpu, queue);
    if (again && process->place == PLACE_RUNNING)
        call(simulator, acting_cpu, owner->cpu, PREEMPT_POLICY);
    if (!again || process->place != PLACE_QUEUED)
        return;
    queue_remove(simulator, acting_cpu, queue, process);
    queue_add(simulator, acting_cpu, queue, process, ENQUEUE_MOVED, NULL);
    announce(simulator, acting_cpu, queue, process);
}

static inline bool asks_for_owners(const struct simulator *simulator)
{
    return policy->waiters_changed && simulator->scheduler.follows_waits;
}

static inline bool orders_waiters(const struct simulator *simulator)
{
    return policy->overtakes && simulator->scheduler.orders_waiters;
}

/* Records that the process waits for `owner`; null: for no process. The process is blocked, or is
 * about to block. */
static inline void name_owner(struct simulator *simulator, uint32_t acting_cpu,
                              struct process *process, struct process *owner)
{
    if (asks_for_owners(simulator))
        wait_for_task(&simulator->scheduler, &process->task, owner ? &owner->task : NULL,
                      acting_cpu);
}

/* Informs the policy of a changed attribute of a process that may wait for an owner. */
static inline void notify_owner_of_change(struct simulator *simulator, uint32_t acting_cpu,
                                          const struct process *process)
{
    if (process->task.waits_for)
        notify_owners(&simulator->scheduler, process->task.waits_for, acting_cpu);
}

/* ---- owners of channels ---- */

/* Returns the channel's owner: the process that must give an item before the waiting processes can
 * continue. Returns null if the owner is not known, or has ended. */
static struct process *owner_of(const struct simulator *simulator, const struct channel *channel)
{
    if (channel->owner_pid == 0)
        return NULL;
    struct process *owner = process_at(simulator, channel->owner);
    bool lives = owner->task.pid == channel->owner_pid && owner->place != PLACE_FREE &&
                 owner->place != PLACE_ZOMBIE;
    return lives ? owner : NULL;
}

/* Sets the channel's owner; null: none. */
static void set_owner(struct simulator *simulator, uint32_t acting_cpu, struct channel *channel,
                      struct process *owner)
{
    channel->owner = owner ? owner->task.slot : NOBODY;
    channel->owner_pid = owner ? owner->task.pid : 0;
    if (!asks_for_owners(simulator))
        return;
    for (uint32_t slot = channel->first; slot != NOBODY; slot = process_at(simulator, slot)->link)
        name_owner(simulator, acting_cpu, process_at(simulator, slot), owner);
}

/* Returns the highest ceiling of the locks that the process holds, encoded as in a task. */
static uint32_t ceiling_of(const struct simulator *simulator, const struct process *process)
{
    uint32_t highest = 0;
    for (uint32_t i = 0; i < simulator->used.channels; i++) {
        const struct channel *channel = &simulator->channels[i];
        bool has = channel->is_lock && channel->ceiling && owner_of(simulator, channel) == process;
        if (has && (highest == 0 || channel->ceiling < highest))
            highest = channel->ceiling;
    }
    return highest;
}

static void set_ceiling(struct simulator *simulator, uint32_t acting_cpu, struct process *process)
{
    uint32_t ceiling = ceiling_of(simulator, process);
    if (asks_for_owners(simulator))
        set_task_ceiling(&simulator->scheduler, &process->task, ceiling, acting_cpu);
    process->task.ceiling = ceiling;
    simulator->attribute_changes++;
}

/* Gives the lock to the process; null: to no process. */
static void hand_lock(struct simulator *simulator, uint32_t acting_cpu, struct channel *channel,
                      struct process *process)
{
    struct process *before = owner_of(simulator, channel);
    set_owner(simulator, acting_cpu, channel, process);
    if (process && channel->ceiling)
        set_ceiling(simulator, acting_cpu, process);
    if (before && channel->ceiling)
        set_ceiling(simulator, acting_cpu, before);
}

/* ---- owners of waits for children ---- */

/* Returns the only child that can end the wait, or null if there are several. No child has ended
 * yet. */
static struct process *only_child(const struct simulator *simulator, const struct process *parent)
{
    for (uint32_t slot = 0; slot < simulator->most_processes && parent->children == 1; slot++) {
        struct process *child = process_at(simulator, slot);
        if (child->place != PLACE_FREE && process_parent(simulator, child) == parent &&
            child != parent)
            return child;
    }
    return NULL;
}

#endif
