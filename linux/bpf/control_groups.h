/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_CONTROL_GROUPS_H
#define LINUX_BPF_CONTROL_GROUPS_H

/*
 * The groups of a policy that uses groups. A number belongs to a control group (one with the CPU
 * controller) or to a group that users name by the control files. Control groups get the numbers
 * from FIRST_CHOICE first. A thread is in the group that a user chose for it, or else in its
 * control group's. If no number is free for a control group, it counts as a part of its parent.
 *
 * The loader drops the callbacks below for a policy that does not use groups. Linux calls the
 * callbacks of one control group sequentially, and creates and removes one control group at a time.
 */

#include "locked_queues.h"

#include "policies/support/groups.h"

#define FIRST_CHOICE (GROUPS_MAX / 4)
#define NS_PER_US    1000

struct numbered {
    uint32_t number;      /* its own, or its parent's */
    uint32_t is_assigned; /* 1: `number` is its own */
};

struct {
    __uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct numbered);
} numbers SEC(".maps");

/* For display, by number. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, GROUPS_MAX);
    __type(key, uint32_t);
    __type(value, struct control_group);
} control_groups SEC(".maps");

static __noinline uint32_t number_of(struct cgroup *group)
{
    struct numbered *known = bpf_cgrp_storage_get(&numbers, group, NULL, 0);
    return known ? known->number % GROUPS_MAX : 0;
}

/* ---- numbers ---- */

/* Returns the lowest number, at least `from`, that is neither named by users nor taken, or 0. */
static __noinline uint32_t free_number(uint32_t from)
{
    uint32_t taken = host->users_groups | host->control_groups;
    for (uint32_t number = unseen(from); number < GROUPS_MAX && can_loop; number++) {
        if (!(taken >> number & 1))
            return number;
    }
    return 0;
}

/* Reserves a number for users. No control group can then get it. Returns false if a control
 * group uses it. */
static __noinline bool claim_number(uint32_t number)
{
    uint32_t bit = 1u << (number & 31);
    if (!POLICY.by_groups || number == 0 || !host)
        return true;
    if (host->control_groups & bit)
        return false;
    __sync_fetch_and_or(&host->users_groups, bit);
    return true;
}

/* A group's number is higher than its parent's. */
static __noinline uint32_t take_number(uint32_t parent)
{
    uint32_t number = unseen(free_number(parent < FIRST_CHOICE ? FIRST_CHOICE : parent + 1));
    if (!number)
        number = unseen(free_number(parent + 1));
    if (number)
        __sync_fetch_and_or(&host->control_groups, 1u << (number & 31));
    return number;
}

/* ---- the values of a group ---- */

static __noinline void set_field(uint32_t number, uint32_t field, uint64_t value)
{
    unsigned long flags;
    if (!group_value_allowed(number, field, (int64_t)value))
        return;
    group_set(&host->scheduler, number, (enum group_field)field, (int64_t)value);
    bpf_local_irq_save(&flags);
    trace_emit(TRACE_TASK_GROUP, number, field, value);
    bpf_local_irq_restore(&flags);
}

/* Linux's representation of "no limit" exceeds any quota. */
static __noinline void set_limit(uint32_t number, uint64_t period_us, uint64_t quota_us)
{
    bool limited = quota_us <= TASK_TIME_MAX / NS_PER_US;
    set_field(number, GROUP_PERIOD, period_us * NS_PER_US);
    set_field(number, GROUP_QUOTA, limited ? quota_us * NS_PER_US : 0);
}

/* `group`: null if the number no longer belongs to a control group. */
static __noinline int show(uint32_t number, struct cgroup *group)
{
    uint32_t key = number % GROUPS_MAX;
    struct control_group *shown = bpf_map_lookup_elem(&control_groups, &key);
    struct share_group SHARED_MEMORY *entry = &host->scheduler.group[key];
    if (!shown)
        return 0;
    if (group)
        bpf_probe_read_kernel_str(shown->name, sizeof(shown->name), BPF_CORE_READ(group, kn, name));
    shown->parent = entry->parent;
    shown->weight = entry->weight;
    shown->quota = entry->quota;
    shown->period = entry->period;
    shown->number = group ? number : 0;
    return 0;
}

static __noinline uint32_t number_of_parent(struct cgroup *group)
{
    struct cgroup *parent = bpf_cgroup_ancestor(group, group->level - 1);
    if (!parent)
        return 0;
    uint32_t number = number_of(parent);
    bpf_cgroup_release(parent);
    return number;
}

SEC("struct_ops/cgroup_init")
s32 BPF_PROG(host_cgroup_init, struct cgroup *group, struct scx_cgroup_init_args *arguments)
{
    USE_ARENA();
    if (!host || group->level == 0)
        return 0;
    uint32_t parent = number_of_parent(group);
    struct numbered *entry =
        bpf_cgrp_storage_get(&numbers, group, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!entry)
        return 0;
    uint32_t number = take_number(parent);
    entry->is_assigned = number != 0;
    entry->number = number ? number : parent;
    if (!number) {
        ask_loader(REQUEST_FULL, 0);
        return 0;
    }
    set_field(number, GROUP_PARENT, parent);
    set_field(number, GROUP_WEIGHT, arguments->weight);
    if (bpf_core_field_exists(arguments->bw_quota_us))
        set_limit(number, arguments->bw_period_us, arguments->bw_quota_us);
    show(number, group);
    return 0;
}

/* The group has no threads any more. Its number must look as if it had never been set. */
SEC("struct_ops/cgroup_exit")
void BPF_PROG(host_cgroup_exit, struct cgroup *group)
{
    USE_ARENA();
    struct numbered *entry = bpf_cgrp_storage_get(&numbers, group, NULL, 0);
    if (!host || !entry || !entry->is_assigned)
        return;
    uint32_t number = entry->number;
    entry->is_assigned = 0;
    set_field(number, GROUP_PARENT, 0);
    set_field(number, GROUP_WEIGHT, GROUP_WEIGHT_DEFAULT);
    set_limit(number, GROUP_PERIOD_DEFAULT / NS_PER_US, UINT64_MAX);
    show(number, NULL);
    __sync_fetch_and_and(&host->control_groups, ~(1u << (number & 31)));
}

SEC("struct_ops/cgroup_set_weight")
void BPF_PROG(host_cgroup_set_weight, struct cgroup *group, u32 weight)
{
    USE_ARENA();
    struct numbered *entry = bpf_cgrp_storage_get(&numbers, group, NULL, 0);
    if (!host || !entry || !entry->is_assigned)
        return;
    set_field(entry->number, GROUP_WEIGHT, weight);
    show(entry->number, group);
}

SEC("struct_ops/cgroup_set_bandwidth")
void BPF_PROG(host_cgroup_set_bandwidth, struct cgroup *group, u64 period_us, u64 quota_us)
{
    USE_ARENA();
    struct numbered *entry = bpf_cgrp_storage_get(&numbers, group, NULL, 0);
    if (!host || !entry || !entry->is_assigned)
        return;
    set_limit(entry->number, period_us, quota_us);
    show(entry->number, group);
}

/* ---- the threads of a group ---- */

/* Returns the number of the thread's control group, for a thread that users put into no group. */
static __always_inline uint32_t group_of_thread(const slot_t *slot, uint32_t of_user)
{
    return of_user ? of_user : slot->control_group;
}

/* Returns the group that a user chose for the thread, or 0. */
static __noinline uint32_t group_by_user(struct task_struct *thread)
{
    struct task_attributes *stored = bpf_task_storage_get(&attributes, thread, NULL, 0);
    return stored && stored->set ? stored->group : 0;
}

static __noinline void report_group(uint32_t pid, uint32_t group)
{
    unsigned long flags;
    bpf_local_irq_save(&flags);
    trace_emit(TRACE_ATTRIBUTE, pid, ATTRIBUTE_TASKGROUP, group);
    bpf_local_irq_restore(&flags);
}

/* Joins the thread to its group before the policy knows it. A reader of the trace assumes that a
 * child is in its parent's group. A different group can only be recorded after FORK is written. */
static __always_inline void join_control_group(struct task_struct *thread, slot_t *slot,
                                               const slot_t *parent,
                                               struct scx_init_task_args *arguments)
{
    if (!POLICY.by_groups || !bpf_core_field_exists(arguments->cgroup) || !arguments->cgroup)
        return;
    uint32_t by_user = slot->task.group;
    slot->control_group = number_of(arguments->cgroup);
    slot->task.group = group_of_thread(slot, by_user);
    if (arguments->fork)
        slot->assumes_parent_group = slot->task.group != (parent ? parent->task.group : 0);
    else if (slot->task.group != by_user)
        report_group((uint32_t)thread->pid, slot->task.group);
}

static __always_inline void report_pending(slot_t *slot)
{
    if (!POLICY.by_groups || !slot->assumes_parent_group)
        return;
    slot->assumes_parent_group = 0;
    report_group((uint32_t)slot->task.pid, slot->task.group);
}

/* The policy ends, or the thread has ended. */
static __always_inline void leave_control_group(struct task_struct *thread, const slot_t *slot)
{
    if (!POLICY.by_groups || thread->exit_state)
        return;
    uint32_t by_user = group_by_user(thread);
    if (slot->task.group != by_user)
        report_group((uint32_t)thread->pid, by_user);
}

/* Linux has taken the thread off its queue for the move. */
SEC("struct_ops/cgroup_move")
void BPF_PROG(host_cgroup_move, struct task_struct *thread, struct cgroup *from, struct cgroup *to)
{
    USE_ARENA();
    slot_t *slot = slot_of(thread);
    if (!slot)
        return;
    slot->control_group = number_of(to);
    uint32_t group = group_of_thread(slot, group_by_user(thread));
    if (group != slot->task.group)
        change_task(slot, (uint32_t)thread->pid, ATTRIBUTE_TASKGROUP, group);
    check();
}

#endif
