/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Control groups share CPUs by their weights, and tasks of a group by theirs. Each group has a
 * queue; a tree orders the groups with tasks by the virtual time that they have used.
 */
#include "scheduler.h"

enum { WEIGHT_NORMAL = 100, GROUPS_TRIED = 64, PENALTY_PART = 16 };

const volatile u64 slice_ns = 20000000;
u64 group_vtime; /* of the group that was served last */

struct group_node {
    struct bpf_rb_node node;
    u64 vtime;
    u64 id;
};
struct group_state {
    u64 weight;
    u64 task_vtime;
    struct group_node TYPE_TAG("kptr") * node; /* NULL: it is in the tree */
};
struct task_state {
    u64 stopped_slices;
};
struct {
    NUMBER(type, MAP_CGRP_STORAGE);
    NUMBER(map_flags, NO_PREALLOC);
    TYPE(key, s32);
    TYPE(value, struct group_state);
} groups_of_kernel SECTION(".maps");
struct {
    NUMBER(type, MAP_TASK_STORAGE);
    NUMBER(map_flags, NO_PREALLOC);
    TYPE(key, s32);
    TYPE(value, struct task_state);
} tasks SECTION(".maps");

struct bpf_spin_lock tree_lock HIDDEN_DATA(tree);
struct bpf_rb_root tree HIDDEN_DATA(tree) CONTAINS(group_node, node);

static bool is_less(struct bpf_rb_node *a, const struct bpf_rb_node *b)
{
    return is_before(CONTAINER_OF(a, struct group_node, node)->vtime,
                     CONTAINER_OF(b, struct group_node, node)->vtime);
}

static void add_to_tree(struct group_node *node)
{
    lock(&tree_lock);
    bpf_rbtree_add_impl(&tree, &node->node, is_less, NULL, 0);
    unlock(&tree_lock);
}

static struct group_state *state_of(struct cgroup *group)
{
    return cgroup_storage(&groups_of_kernel, group, NULL, 0);
}

CALLBACK(s32, groups_select_cpu)
{
    bool is_idle = false;
    s32 cpu = scx_bpf_select_cpu_dfl(TASK(0), (s32)argument[1], argument[2], &is_idle);
    if (is_idle)
        insert(TASK(0), SCX_DSQ_LOCAL, slice_ns, 0);
    return cpu;
}

CALLBACK(void, groups_enqueue)
{
    struct cgroup *group = scx_bpf_task_cgroup(TASK(0));
    struct group_state *state = state_of(group);
    if (state) {
        u64 vtime = TASK(0)->scx.dsq_vtime;
        if (is_before(vtime, state->task_vtime - slice_ns))
            vtime = state->task_vtime - slice_ns;
        insert_ordered(TASK(0), group->kn->id, slice_ns, vtime, argument[1]);
        struct group_node *node = pointer_exchange(&state->node, NULL);
        if (node) {
            if (is_before(node->vtime, group_vtime - slice_ns))
                node->vtime = group_vtime - slice_ns;
            add_to_tree(node);
        }
    }
    bpf_cgroup_release(group);
}

static NO_INLINE struct group_node *take_first(void)
{
    lock(&tree_lock);
    struct bpf_rb_node *node = bpf_rbtree_first(&tree);
    if (node)
        node = bpf_rbtree_remove(&tree, node);
    unlock(&tree_lock);
    return node ? CONTAINER_OF(node, struct group_node, node) : NULL;
}

/* Takes a task of the group, or removes the group from the tree. Returns whether there was a task.
 */
static NO_INLINE bool serve(struct group_node *node)
{
    struct cgroup *group = bpf_cgroup_from_id(node->id);
    struct group_state *state = group ? state_of(group) : NULL;
    bool served = false;
    if (!state) {
        bpf_obj_drop_impl(node, NULL);
    } else if (move_to_local(node->id)) {
        if (is_before(group_vtime, node->vtime))
            group_vtime = node->vtime;
        node->vtime += slice_ns * WEIGHT_NORMAL / (state->weight ? state->weight : 1);
        add_to_tree(node);
        served = true;
    } else if (scx_bpf_dsq_nr_queued(node->id) > 0) { /* none of them may run here */
        node->vtime += slice_ns / PENALTY_PART;
        add_to_tree(node);
    } else {
        struct group_node *old = pointer_exchange(&state->node, node);
        if (old)
            bpf_obj_drop_impl(old, NULL);
    }
    if (group)
        bpf_cgroup_release(group);
    return served;
}

CALLBACK(void, groups_dispatch)
{
    for (u32 tries = 0; tries < GROUPS_TRIED; tries++) {
        struct group_node *node = take_first();
        if (!node || serve(node))
            return;
    }
}

CALLBACK(void, groups_stopping)
{
    struct task_state *task = task_storage(&tasks, TASK(0), NULL, 0);
    u64 used = used_slice(TASK(0), slice_ns);
    TASK(0)->scx.dsq_vtime += used * WEIGHT_NORMAL / TASK(0)->scx.weight;
    if (task)
        task->stopped_slices++;
    struct cgroup *group = scx_bpf_task_cgroup(TASK(0));
    struct group_state *state = state_of(group);
    if (state && is_before(state->task_vtime, TASK(0)->scx.dsq_vtime))
        state->task_vtime = TASK(0)->scx.dsq_vtime;
    bpf_cgroup_release(group);
}

SLEEPING_CALLBACK(s32, groups_init_task)
{
    const struct scx_init_task_args *given = (const struct scx_init_task_args *)argument[1];
    struct group_state *state = state_of(given->cgroup);
    if (state)
        TASK(0)->scx.dsq_vtime = state->task_vtime;
    return task_storage(&tasks, TASK(0), NULL, STORAGE_CREATE) ? 0 : -NO_MEMORY;
}

SLEEPING_CALLBACK(s32, groups_cgroup_init)
{
    struct cgroup *group = (struct cgroup *)argument[0];
    const struct scx_cgroup_init_args *given = (const struct scx_cgroup_init_args *)argument[1];
    s32 error = scx_bpf_create_dsq(group->kn->id, -1);
    if (error)
        return error;
    struct group_state *state = cgroup_storage(&groups_of_kernel, group, NULL, STORAGE_CREATE);
    struct group_node *node =
        bpf_obj_new_impl(__builtin_btf_type_id(*(struct group_node *)0, 0), NULL);
    if (!state || !node) {
        if (node)
            bpf_obj_drop_impl(node, NULL);
        return -NO_MEMORY;
    }
    state->weight = given->weight;
    node->id = group->kn->id;
    node->vtime = group_vtime;
    struct group_node *old = pointer_exchange(&state->node, node);
    if (old)
        bpf_obj_drop_impl(old, NULL);
    return 0;
}

CALLBACK(void, groups_cgroup_set_weight)
{
    struct group_state *state = state_of((struct cgroup *)argument[0]);
    if (state)
        state->weight = argument[1];
}

RECORD_EXIT(groups_exit)

SECTION(".struct_ops.link")
struct sched_ext_ops groups = {
    .select_cpu = (void *)groups_select_cpu,
    .enqueue = (void *)groups_enqueue,
    .dispatch = (void *)groups_dispatch,
    .stopping = (void *)groups_stopping,
    .init_task = (void *)groups_init_task,
    .cgroup_init = (void *)groups_cgroup_init,
    .cgroup_set_weight = (void *)groups_cgroup_set_weight,
    .exit = (void *)groups_exit,
    .name = "groups",
};
