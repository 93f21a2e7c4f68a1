/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_TASK_TREE_H
#define SCHEDLAB_TASK_TREE_H

#include "policy.h"

/*
 * Tasks ordered by key, and by PID for equal keys. Inserting, removing, and finding the first task
 * with a low enough value are O(log n). The minimum of a second value over all tasks is also
 * maintained.
 *
 * It is a balanced binary tree (Adelson-Velsky and Landis 1962): the heights of a task's two
 * subtrees differ by one at most. Each task knows the least values of its subtree, so that a search
 * skips subtrees where all values are too high. Keys and values may wrap around: only their
 * differences count, which must be below 2^63. Other values do not wrap.
 *
 * The tree lies in the tasks: a policy's task state begins with its node. Its loops go down or up
 * the tree and are never nested, so a BPF verifier has few paths to follow.
 */
struct task_tree_node {
    uint64_t key;
    uint64_t value;
    uint64_t least; /* value of the subtree */
    uint64_t other;
    uint64_t least_other; /* of the subtree */
    uint64_t height;      /* of the subtree: 1 for a task without others below it */
    task_t *parent;
    task_t *child[2]; /* before it, after it */
};
typedef struct task_tree_node SHARED_MEMORY task_tree_node_t;

struct task_tree {
    task_t *root;
};
typedef struct task_tree SHARED_MEMORY task_tree_t;

#define TREE_NODE(task)   STATE_OF(task, struct task_tree_node)
#define TREE_HEIGHT(task) ((task) ? TREE_NODE(task)->height : 0)

/* Returns true if `one` comes before `other`. */
POLICY_FUNCTION bool task_tree_before(const task_t *one, const task_t *other)
{
    int64_t difference = (int64_t)(TREE_NODE(one)->key - TREE_NODE(other)->key);
    return difference != 0 ? difference < 0 : one->pid < other->pid;
}

/* Adds a subtree's values to its parent's. Inline: BPF allows at most eight nested calls,
 * including the host's. */
static inline __attribute__((always_inline, unused)) void
task_tree_take_in(task_tree_node_t *node, const task_tree_node_t *child)
{
    if (child->height >= node->height)
        node->height = child->height + 1;
    if ((int64_t)(child->least - node->least) < 0)
        node->least = child->least;
    if (child->least_other < node->least_other)
        node->least_other = child->least_other;
}

/* Recomputes height and least values from the subtrees. */
POLICY_FUNCTION void task_tree_sum_up(task_t *task)
{
    task_tree_node_t *node = TREE_NODE(task);
    node->height = 1;
    node->least = node->value;
    node->least_other = node->other;
    if (node->child[0])
        task_tree_take_in(node, TREE_NODE(node->child[0]));
    if (node->child[1])
        task_tree_take_in(node, TREE_NODE(node->child[1]));
}

/* Replaces `old` by `task` (or nothing) below `parent`, or at the root if that is null. */
POLICY_FUNCTION void task_tree_link(task_tree_t *tree, task_t *parent, const task_t *old,
                                    task_t *task)
{
    if (!parent)
        tree->root = task;
    else
        TREE_NODE(parent)->child[TREE_NODE(parent)->child[1] == old] = task;
    if (task)
        TREE_NODE(task)->parent = parent;
}

/* Rotates: `task` takes the place of its parent, which becomes its child. */
POLICY_FUNCTION void task_tree_lift(task_tree_t *tree, task_t *task)
{
    task_t *parent = TREE_NODE(task)->parent;
    bool after = TREE_NODE(parent)->child[1] == task;
    task_t *between = TREE_NODE(task)->child[!after];
    task_tree_link(tree, TREE_NODE(parent)->parent, parent, task);
    TREE_NODE(parent)->child[after] = between;
    if (between)
        TREE_NODE(between)->parent = parent;
    TREE_NODE(task)->child[!after] = parent;
    TREE_NODE(parent)->parent = task;
    task_tree_sum_up(parent);
    task_tree_sum_up(task);
}

/* Rebalances and updates all tasks from `task` to the root after a change below `task`. The
 * heights of a task's subtrees may differ by two. */
POLICY_FUNCTION void task_tree_mend(task_tree_t *tree, task_t *task)
{
    while (task && LOOP_GUARD) {
        const task_tree_node_t *node = TREE_NODE(task);
        uint64_t before = TREE_HEIGHT(node->child[0]);
        uint64_t after = TREE_HEIGHT(node->child[1]);
        if (before <= after + 1 && after <= before + 1) {
            task_tree_sum_up(task);
        } else {
            bool side = after > before;
            task_t *high = node->child[side];
            task_t *inner = TREE_NODE(high)->child[!side];
            task_t *outer = TREE_NODE(high)->child[side];
            if (TREE_HEIGHT(inner) > TREE_HEIGHT(outer)) {
                task_tree_lift(tree, inner);
                high = inner;
            }
            task_tree_lift(tree, high);
            task = high;
        }
        task = TREE_NODE(task)->parent;
    }
}

/* Inserts a task that is in no tree. */
POLICY_FUNCTION void task_tree_insert(task_tree_t *tree, task_t *task, uint64_t key, uint64_t value,
                                      uint64_t other)
{
    task_tree_node_t *node = TREE_NODE(task);
    node->key = key;
    node->value = value;
    node->other = other;
    node->parent = NULL;
    node->child[0] = NULL;
    node->child[1] = NULL;
    task_tree_sum_up(task);
    task_t *parent = NULL;
    task_t *next = tree->root;
    bool after = false;
    while (next && LOOP_GUARD) {
        parent = next;
        after = task_tree_before(parent, task);
        next = TREE_NODE(parent)->child[after];
    }
    node->parent = parent;
    if (parent)
        TREE_NODE(parent)->child[after] = task;
    else
        tree->root = task;
    task_tree_mend(tree, parent);
}

/* Removes `task`, which has two subtrees: the next task takes its place. Returns the lowest task
 * below which something changed. */
POLICY_FUNCTION task_t *task_tree_replace(task_tree_t *tree, task_t *task)
{
    task_tree_node_t *node = TREE_NODE(task);
    task_t *next = node->child[1];
    while (TREE_NODE(next)->child[0] && LOOP_GUARD)
        next = TREE_NODE(next)->child[0];
    task_t *changed = TREE_NODE(next)->parent;
    if (changed == task) {
        changed = next;
    } else {
        task_tree_link(tree, changed, next, TREE_NODE(next)->child[1]);
        TREE_NODE(next)->child[1] = node->child[1];
        TREE_NODE(node->child[1])->parent = next;
    }
    TREE_NODE(next)->child[0] = node->child[0];
    TREE_NODE(node->child[0])->parent = next;
    task_tree_link(tree, node->parent, task, next);
    return changed;
}

/* Takes out a task that is in the tree. */
POLICY_FUNCTION void task_tree_remove(task_tree_t *tree, task_t *task)
{
    const task_tree_node_t *node = TREE_NODE(task);
    task_t *changed = node->parent;
    if (node->child[0] && node->child[1])
        changed = task_tree_replace(tree, task);
    else
        task_tree_link(tree, changed, task, node->child[0] ? node->child[0] : node->child[1]);
    task_tree_mend(tree, changed);
}

/* Returns the first task with a value of at most `limit`, or null. */
POLICY_FUNCTION task_t *task_tree_first(const task_tree_t *tree, uint64_t limit)
{
    task_t *task = tree->root;
    while (task && LOOP_GUARD) {
        const task_tree_node_t *node = TREE_NODE(task);
        const task_t *before = node->child[0];
        if (before && (int64_t)(TREE_NODE(before)->least - limit) <= 0)
            task = node->child[0];
        else if ((int64_t)(node->value - limit) <= 0)
            return task;
        else
            task = node->child[1];
    }
    return NULL;
}

/* Returns the first task with a value of at most `limit` that may run on `cpu`. If there is
 * none, returns the first task that may run there, or null. Costs O(n). */
POLICY_RARE_FUNCTION task_t *task_tree_search_on(const task_tree_t *tree, uint64_t limit,
                                                 uint32_t cpu)
{
    task_t *first = NULL;
    task_t *task = tree->root;
    const task_t *from = NULL;
    while (task && LOOP_GUARD) {
        const task_tree_node_t *node = TREE_NODE(task);
        bool moves_down = from == node->parent;
        task_t *next = node->parent;
        if (moves_down && node->child[0]) {
            next = node->child[0];
        } else if (moves_down || from == node->child[0]) {
            bool may_run = task_may_run_on(task, cpu);
            if (may_run && (int64_t)(node->value - limit) <= 0)
                return task;
            if (may_run && !first)
                first = task;
            if (node->child[1])
                next = node->child[1];
        }
        from = task;
        task = next;
    }
    return first;
}

#endif
