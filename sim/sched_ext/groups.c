/* SPDX-License-Identifier: MIT */

/* Groups of tasks as control groups. A group is created when its first task, or its first child,
 * enters it: so its attributes are known to cgroup_init(). */

#include <stdio.h>
#include <string.h>

#include "abi/trace_format.h"
#include "policies/support/groups.h"
#include "sim/machine.h"
#include "sim/sched_ext/state.h"

#define UNLIMITED_US UINT64_MAX

static uint64_t structures_at(const struct sched_ext *ext, uint32_t group)
{
    return ext->kernel.groups + group * sizeof(struct group_structures);
}

static struct group_structures *structures_of(const struct sched_ext *ext, uint32_t group)
{
    return kernel_memory(ext, structures_at(ext, group));
}

static uint64_t part_address(const struct sched_ext *ext, uint32_t group, uint64_t offset)
{
    return guest_address(REGION_KERNEL, structures_at(ext, group) + offset);
}

uint64_t group_address(const struct sched_ext *ext, uint32_t group)
{
    return part_address(ext, group, offsetof(struct group_structures, cgroup));
}

uint32_t group_at(const struct sched_ext *ext, uint64_t address)
{
    uint64_t first = group_address(ext, 0);
    uint64_t group = (address - first) / sizeof(struct group_structures);
    bool valid =
        address >= first && group < GROUPS_MAX && group_address(ext, (uint32_t)group) == address;
    return valid && ext->groups[group].exists ? (uint32_t)group : NONE;
}

static const struct share_group *settings_of(const struct sched_ext *ext, uint32_t group)
{
    static const struct share_group root = {.weight = GROUP_WEIGHT_DEFAULT};
    const struct scheduler *scheduler = &ext->simulator->scheduler;
    return group < scheduler->groups ? &scheduler->group[group] : &root;
}

/* ---- structures ---- */

static void fill_ancestors(struct sched_ext *ext, uint32_t group)
{
    struct cgroup *cgroup = &structures_of(ext, group)->cgroup;
    uint32_t parent = ext->groups[group].parent;
    const struct cgroup *above = &structures_of(ext, parent)->cgroup;
    cgroup->level = group == 0 ? 0 : above->level + 1;
    for (int level = 0; level < cgroup->level && level < CGROUP_LEVELS; level++)
        cgroup->ancestors[level] = above->ancestors[level];
    if (cgroup->level < CGROUP_LEVELS)
        cgroup->ancestors[cgroup->level] = group_address(ext, group);
}

static void fill_group(struct sched_ext *ext, uint32_t group)
{
    struct group_structures *parts = structures_of(ext, group);
    uint32_t parent = ext->groups[group].parent;
    uint64_t css = part_address(ext, group, offsetof(struct group_structures, task_group.css));
    memset(parts, 0, sizeof(*parts));
    if (group > 0)
        snprintf(parts->name, sizeof(parts->name), "group%u", group);
    parts->node.id = group + 1;
    parts->node.name = part_address(ext, group, offsetof(struct group_structures, name));
    parts->cgroup.kn = part_address(ext, group, offsetof(struct group_structures, node));
    parts->cgroup.dom_cgrp = parts->cgroup.self.cgroup = group_address(ext, group);
    parts->cgroup.subsys[cpu_cgrp_id] = css;
    parts->task_group.css.cgroup = group_address(ext, group);
    parts->task_group.shares = settings_of(ext, group)->weight * 1024ull / 100;
    parts->css_set.dfl_cgrp = group_address(ext, group);
    parts->css_set.subsys[cpu_cgrp_id] = css;
    if (group > 0) {
        parts->node.parent = parts->node.__parent =
            part_address(ext, parent, offsetof(struct group_structures, node));
        parts->task_group.css.parent =
            part_address(ext, parent, offsetof(struct group_structures, task_group.css));
        parts->task_group.parent =
            part_address(ext, parent, offsetof(struct group_structures, task_group));
        parts->cgroup.self.parent = part_address(ext, parent, 0);
    }
    fill_ancestors(ext, group);
}

/* ---- operations ---- */

static uint64_t quota_us(const struct share_group *settings)
{
    return settings->quota ? settings->quota / 1000 : UNLIMITED_US;
}

static uint64_t period_us(const struct share_group *settings)
{
    return (settings->period ? settings->period : GROUP_PERIOD_DEFAULT) / 1000;
}

static void create_group(struct sched_ext *ext, uint32_t group)
{
    const struct share_group *settings = settings_of(ext, group);
    uint64_t address = guest_address(REGION_CONTEXT, CONTEXT_ARGUMENTS);
    struct scx_cgroup_init_args *arguments = guest_memory(&ext->guest, address, sizeof(*arguments));
    ext->groups[group] = (struct ext_group){.exists = true, .parent = settings->parent};
    fill_group(ext, group);
    if (!has_op(ext, OP_cgroup_init) || ext->bypasses)
        return;
    *arguments = (struct scx_cgroup_init_args){
        .weight = settings->weight,
        .bw_period_us = period_us(settings),
        .bw_quota_us = quota_us(settings),
    };
    int32_t result = (int32_t)call_op(ext, OP_cgroup_init, group_address(ext, group), address, 0);
    if (result != 0)
        scx_error(ext, "cgroup_init() of group %u returned %d", group, result);
}

void begin_groups(struct sched_ext *ext)
{
    create_group(ext, 0);
}

uint32_t enter_group(struct sched_ext *ext, uint32_t group)
{
    if (group >= ext->simulator->scheduler.groups && group > 0)
        return 0;
    if (!ext->groups[group].exists) {
        enter_group(ext, settings_of(ext, group)->parent);
        create_group(ext, group);
    }
    return group;
}

void group_changed(struct sched_ext *ext, uint32_t group, uint32_t field)
{
    const struct share_group *settings = settings_of(ext, group);
    if (group >= GROUPS_MAX || !ext->groups[group].exists || ext->bypasses)
        return;
    if (ext->groups[group].parent != settings->parent)
        scx_error(ext, "group %u has tasks and cannot get another parent; set the parent first",
                  group);
    structures_of(ext, group)->task_group.shares = settings->weight * 1024ull / 100;
    if (field == GROUP_WEIGHT && has_op(ext, OP_cgroup_set_weight))
        call_op(ext, OP_cgroup_set_weight, group_address(ext, group), settings->weight, 0);
    if ((field == GROUP_QUOTA || field == GROUP_PERIOD) && has_op(ext, OP_cgroup_set_bandwidth))
        call_op(ext, OP_cgroup_set_bandwidth, group_address(ext, group), period_us(settings),
                quota_us(settings));
}

void end_groups(struct sched_ext *ext)
{
    for (uint32_t group = GROUPS_MAX; group-- > 0;) {
        if (ext->groups[group].exists && has_op(ext, OP_cgroup_exit))
            call_op(ext, OP_cgroup_exit, group_address(ext, group), 0, 0);
        ext->groups[group].exists = false;
        forget_storage(ext, MAP_CGRP_STORAGE, group);
    }
}
