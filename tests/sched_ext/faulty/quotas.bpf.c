/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A queue per control group, and the quotas of the groups, with a mistake that `mistake` chooses: 0
 * is none.
 */
#include "../objects/scheduler.h"

enum mistake { NONE, LOSES_QUOTAS, WAITS_FOR_ENQUEUE };
enum { GROUPS_MAX = 32, LEVELS_MAX = 16, TIMER_NS = 5000000, NS_PER_US = 1000, PENDING = 1000 };

const volatile u32 mistake;
const volatile u64 slice_ns = 5000000;
u64 group_ids[GROUPS_MAX];
u32 groups, next_group;

struct group_state {
    u64 quota_ns; /* 0: no limit */
    u64 period_ns;
    u64 period_end;
    u64 used_ns; /* in this period */
};
struct {
    NUMBER(type, MAP_CGRP_STORAGE);
    NUMBER(map_flags, NO_PREALLOC);
    TYPE(key, s32);
    TYPE(value, struct group_state);
} states SECTION(".maps");

struct task_state {
    u64 charged_at;
};
struct {
    NUMBER(type, MAP_TASK_STORAGE);
    NUMBER(map_flags, NO_PREALLOC);
    TYPE(key, s32);
    TYPE(value, struct task_state);
} tasks SECTION(".maps");

struct period_timer {
    struct bpf_timer timer;
};
struct {
    NUMBER(type, MAP_ARRAY);
    NUMBER(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct period_timer);
} timers SECTION(".maps");

static NO_INLINE void set_limit(struct group_state *state, u64 period_us, u64 quota_us)
{
    state->quota_ns = quota_us == (u64)-1 ? 0 : quota_us * NS_PER_US;
    state->period_ns = period_us * NS_PER_US;
    state->period_end = time_ns() + state->period_ns;
}

/* Begins a new period if it is time. What was used beyond the quota counts there. */
static NO_INLINE void renew(struct group_state *state)
{
    u64 now = time_ns();
    if (!state->quota_ns || now < state->period_end)
        return;
    state->used_ns = state->used_ns > state->quota_ns ? state->used_ns - state->quota_ns : 0;
    state->period_end = now + state->period_ns;
}

/* Charges the group and all groups above it. Returns whether all of them are within their quotas.
 */
static NO_INLINE bool charge(struct cgroup *group, u64 used_ns)
{
    s32 first = mistake == LOSES_QUOTAS && group->level > 0 ? group->level - 1 : 0;
    bool within = true;
    for (s32 level = first; level <= group->level && level < LEVELS_MAX; level++) {
        struct cgroup *above = bpf_cgroup_ancestor(group, level);
        struct group_state *state = above ? cgroup_storage(&states, above, NULL, 0) : NULL;
        if (state) {
            state->used_ns += used_ns;
            within = within && (!state->quota_ns || state->used_ns < state->quota_ns);
        }
        if (above)
            bpf_cgroup_release(above);
    }
    return within;
}

static NO_INLINE bool charge_task(struct task_struct *task)
{
    struct task_state *state = task_storage(&tasks, task, NULL, 0);
    struct cgroup *group = scx_bpf_task_cgroup(task);
    u64 now = time_ns();
    bool within = !state || charge(group, now - state->charged_at);
    if (state)
        state->charged_at = now;
    bpf_cgroup_release(group);
    return within;
}

static NO_INLINE void kick_idle(const struct cpumask *allowed)
{
    s32 cpu = scx_bpf_pick_idle_cpu(allowed, 0);
    if (cpu >= 0)
        scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

CALLBACK(s32, quotas_select_cpu)
{
    return (s32)argument[1];
}

CALLBACK(void, quotas_enqueue)
{
    struct cgroup *group = scx_bpf_task_cgroup(TASK(0));
    struct group_state *state = cgroup_storage(&states, group, NULL, 0);
    if (mistake == WAITS_FOR_ENQUEUE && state)
        renew(state);
    insert(TASK(0), PENDING + group->kn->id, slice_ns, argument[1]);
    bpf_cgroup_release(group);
    kick_idle(TASK(0)->cpus_ptr);
    if (argument[1] & SCX_ENQ_LAST)
        scx_bpf_kick_cpu((s32)this_cpu(), 0);
}

static NO_INLINE bool serve(u32 index)
{
    bool served = false;
    if (index >= GROUPS_MAX)
        return false;
    struct cgroup *group = bpf_cgroup_from_id(group_ids[index]);
    if (!group)
        return false;
    if (charge(group, 0))
        served = move_to_local(PENDING + group->kn->id);
    bpf_cgroup_release(group);
    return served;
}

CALLBACK(void, quotas_dispatch)
{
    for (u32 tries = 0; tries < groups && tries < GROUPS_MAX; tries++)
        if (serve(next_group++ % groups))
            return;
}

CALLBACK(void, quotas_running)
{
    struct task_state *state = task_storage(&tasks, TASK(0), NULL, 0);
    if (state)
        state->charged_at = time_ns();
}

CALLBACK(void, quotas_tick)
{
    if (!charge_task(TASK(0)))
        TASK(0)->scx.slice = 0;
}

CALLBACK(void, quotas_stopping)
{
    charge_task(TASK(0));
}

CALLBACK(s32, quotas_init_task)
{
    return task_storage(&tasks, TASK(0), NULL, STORAGE_CREATE) ? 0 : -NO_MEMORY;
}

CALLBACK(s32, quotas_cgroup_init)
{
    struct cgroup *group = (struct cgroup *)argument[0];
    const struct scx_cgroup_init_args *given = (const struct scx_cgroup_init_args *)argument[1];
    struct group_state *state = cgroup_storage(&states, group, NULL, STORAGE_CREATE);
    if (!state || groups >= GROUPS_MAX)
        return -NO_MEMORY;
    set_limit(state, given->bw_period_us, given->bw_quota_us);
    group_ids[groups++] = group->kn->id;
    return scx_bpf_create_dsq(PENDING + group->kn->id, -1);
}

CALLBACK(void, quotas_cgroup_set_bandwidth)
{
    struct group_state *state = cgroup_storage(&states, (struct cgroup *)argument[0], NULL, 0);
    if (state)
        set_limit(state, argument[1], argument[2]);
}

/* Begins periods, and wakes CPUs that have waited for them. */
static s32 begin_periods(__attribute__((unused)) void *map, __attribute__((unused)) u32 *key,
                         struct period_timer *timer)
{
    for (u32 i = 0; i < groups && i < GROUPS_MAX && mistake != WAITS_FOR_ENQUEUE; i++) {
        struct cgroup *group = bpf_cgroup_from_id(group_ids[i]);
        struct group_state *state = group ? cgroup_storage(&states, group, NULL, 0) : NULL;
        if (state)
            renew(state);
        if (group)
            bpf_cgroup_release(group);
    }
    for (u32 cpu = 0; cpu < scx_bpf_nr_cpu_ids(); cpu++)
        scx_bpf_kick_cpu((s32)cpu, SCX_KICK_IDLE);
    timer_start(&timer->timer, TIMER_NS, 0);
    return 0;
}

CALLBACK(s32, quotas_init)
{
    u32 key = 0;
    struct period_timer *timer = map_lookup(&timers, &key);
    if (!timer || timer_init(&timer->timer, &timers, 0))
        return -NO_MEMORY;
    timer_set_callback(&timer->timer, begin_periods);
    return (s32)timer_start(&timer->timer, TIMER_NS, 0);
}

SECTION(".struct_ops.link")
struct sched_ext_ops quotas = {
    .select_cpu = (void *)quotas_select_cpu,
    .enqueue = (void *)quotas_enqueue,
    .dispatch = (void *)quotas_dispatch,
    .running = (void *)quotas_running,
    .tick = (void *)quotas_tick,
    .stopping = (void *)quotas_stopping,
    .init_task = (void *)quotas_init_task,
    .cgroup_init = (void *)quotas_cgroup_init,
    .cgroup_set_bandwidth = (void *)quotas_cgroup_set_bandwidth,
    .init = (void *)quotas_init,
    .flags = OPS_ENQ_LAST,
    .name = "quotas",
};
