/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_OUTSIDE_H
#define LINUX_BPF_OUTSIDE_H

/* Programs that the loader runs: changing an attribute, describing each thread. */

#include "control_groups.h"
#include "describe_task.h"
#include "lock_owners.h"

/* Stores an attribute with the thread: its children inherit it, and the next policy finds it. */
static __noinline int keep_attribute(struct task_struct *thread, uint32_t kind, int64_t value)
{
    struct task_attributes *stored =
        bpf_task_storage_get(&attributes, thread, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!stored)
        return -ENOMEM;
    if (!stored->set) {
        SET_FIRST_ATTRIBUTES(stored);
        stored->set = 1;
    }
    STORE_ATTRIBUTE(stored, kind, value);
    return 0;
}

static __noinline int change_attribute(struct task_struct *thread, uint32_t kind, int64_t value)
{
    if (kind == ATTRIBUTE_TASKGROUP && !claim_number((uint32_t)value))
        return -EBUSY;
    int error = keep_attribute(thread, kind, value);
    if (error)
        return error;
    slot_t *slot = slot_of(thread);
    if (kind == ATTRIBUTE_TASKGROUP && slot)
        value = group_of_thread(slot, (uint32_t)value);
    change_task(slot, (uint32_t)thread->pid, kind, value);
    if (slot)
        notify_change(slot);
    return 0;
}

/* Run by the loader when a user sets an attribute of a thread. */
SEC("syscall")
int attribute_changed(struct attribute_change *change)
{
    USE_ARENA();
    change->result = -ERANGE;
    if (!attribute_allowed(change->kind, change->value))
        return 0;
    change->result = -ESRCH;
    struct task_struct *thread = bpf_task_from_pid(change->pid);
    if (!thread)
        return 0;
    if (!(thread->flags & PF_KTHREAD))
        change->result = change_attribute(thread, change->kind, change->value);
    bpf_task_release(thread);
    return 0;
}

/* Run by the loader with the users' settings of groups: when they change, and when a policy
 * begins. */
SEC("syscall")
int group_changed(struct group_change *change)
{
    USE_ARENA();
    if (!host || !group_value_allowed(change->group, change->field, change->value))
        return -ERANGE;
    if (!claim_number(change->group))
        return -EBUSY;
    group_set(&host->scheduler, change->group, (enum group_field)change->field, change->value);
    return 0;
}

/* Writes a row for each thread of a program; the loader makes sched_status from the rows. */

SEC("iter/task")
int describe_tasks(struct bpf_iter__task *context)
{
    USE_ARENA();
    struct task_struct *thread = context->task;
    struct host_task row;
    if (!thread || thread->flags & PF_KTHREAD)
        return 0;
    describe_task(&row, thread);
    slot_t *slot = slot_of(thread);
    if (slot && slot->known) {
        row.managed = 1;
        row.slice = POLICY.time_slice(&host->scheduler, &slot->task);
        row.drawn = policy_tickets(&POLICY, &host->scheduler, &slot->task);
        row.level = slot->task.level;
        row.selections = slot->task.selections;
    }
    bpf_seq_write(context->meta->seq, &row, sizeof(row));
    return 0;
}

#endif
