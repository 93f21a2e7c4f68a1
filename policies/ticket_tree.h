/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_TICKET_TREE_H
#define SCHEDLAB_TICKET_TREE_H

#include "policy.h"

/*
 * A set of tasks with tickets. Finding the holder of a ticket, inserting and removing are O(log n)
 * (after Wong and Easton 1980).
 *
 * The tasks form a complete binary tree. Each holds the sum of tickets of its subtree. Position 1
 * is the root, position p has the children 2p and 2p + 1: the bits of a position after the first
 * one give the path to it. A new task takes the position after the last; the last one fills the
 * place of a leaving task.
 *
 * The node lies in the task: a policy's task state begins with a ticket_node.
 */
struct ticket_node {
    task_t *parent;
    task_t *child[2];
    uint64_t tickets;
    uint64_t sum; /* of the subtree */
};
typedef struct ticket_node SHARED_MEMORY ticket_node_t;

struct ticket_tree {
    task_t *root;
    uint64_t count;
};
typedef struct ticket_tree SHARED_MEMORY ticket_tree_t;

#define TICKET_NODE(task) STATE_OF(task, struct ticket_node)

POLICY_FUNCTION uint64_t ticket_tree_total(const ticket_tree_t *tree)
{
    return tree->root ? TICKET_NODE(tree->root)->sum : 0;
}

/*
 * Returns the task at `position`, which is taken. Adds `tickets` to the sums of all tasks above it.
 * (A negative number takes them away again: sums count modulo 2^64.)
 */
POLICY_FUNCTION task_t *ticket_tree_descend(ticket_tree_t *tree, uint64_t position,
                                            uint64_t tickets)
{
    task_t *task = tree->root;
    uint32_t depth = LOOP_START(0);
    for (uint64_t rest = position; rest > 1 && LOOP_GUARD; rest >>= 1)
        depth++;
    while (depth > 0 && task && LOOP_GUARD) {
        depth--;
        TICKET_NODE(task)->sum += tickets;
        task = TICKET_NODE(task)->child[position >> depth & 1];
    }
    return task;
}

/* Adds to the sums from `task` up to the root. */
POLICY_FUNCTION void ticket_tree_add(task_t *task, uint64_t tickets)
{
    while (task && LOOP_GUARD) {
        TICKET_NODE(task)->sum += tickets;
        task = TICKET_NODE(task)->parent;
    }
}

/* Replaces `old` by `task` (or nothing) below its parent. */
POLICY_FUNCTION void ticket_tree_link(ticket_tree_t *tree, const task_t *old, task_t *task)
{
    task_t *parent = TICKET_NODE(old)->parent;
    if (!parent)
        tree->root = task;
    else
        TICKET_NODE(parent)->child[TICKET_NODE(parent)->child[1] == old] = task;
    if (task)
        TICKET_NODE(task)->parent = parent;
}

/* Returns the task at a position from 1 to tree->count. */
POLICY_FUNCTION task_t *ticket_tree_at(ticket_tree_t *tree, uint64_t position)
{
    return ticket_tree_descend(tree, position, 0);
}

/* Inserts a task that is in no tree and has at least one ticket. */
POLICY_FUNCTION void ticket_tree_insert(ticket_tree_t *tree, task_t *task, uint64_t tickets)
{
    ticket_node_t *node = TICKET_NODE(task);
    node->child[0] = NULL;
    node->child[1] = NULL;
    node->parent = NULL;
    node->tickets = tickets;
    node->sum = tickets;
    tree->count++;
    if (tree->count == 1) {
        tree->root = task;
        return;
    }
    node->parent = ticket_tree_descend(tree, tree->count >> 1, tickets);
    TICKET_NODE(node->parent)->sum += tickets;
    TICKET_NODE(node->parent)->child[tree->count & 1] = task;
}

/* Takes out the task at the last position. */
POLICY_FUNCTION task_t *ticket_tree_take_last(ticket_tree_t *tree)
{
    task_t *last = ticket_tree_descend(tree, tree->count, 0);
    ticket_tree_add(TICKET_NODE(last)->parent, -TICKET_NODE(last)->tickets);
    ticket_tree_link(tree, last, NULL);
    tree->count--;
    return last;
}

/* Gives `task`, which is in no tree, the place of `old`. */
POLICY_FUNCTION void ticket_tree_replace(ticket_tree_t *tree, const task_t *old, task_t *task)
{
    ticket_node_t *node = TICKET_NODE(task);
    const ticket_node_t *old_node = TICKET_NODE(old);
    ticket_tree_link(tree, old, task);
    node->child[0] = old_node->child[0];
    node->child[1] = old_node->child[1];
    node->sum = old_node->sum;
    if (node->child[0])
        TICKET_NODE(node->child[0])->parent = task;
    if (node->child[1])
        TICKET_NODE(node->child[1])->parent = task;
    ticket_tree_add(task, node->tickets - old_node->tickets);
}

/* Takes out a task that is in the tree. */
POLICY_FUNCTION void ticket_tree_remove(ticket_tree_t *tree, task_t *task)
{
    task_t *last = ticket_tree_take_last(tree);
    if (last != task)
        ticket_tree_replace(tree, task, last);
}

/*
 * Returns the task that holds a ticket, or null if there is no such ticket. Tickets count from
 * 0: first those of the left subtree, then the task's own.
 */
POLICY_FUNCTION task_t *ticket_tree_holder(const ticket_tree_t *tree, uint64_t ticket)
{
    task_t *task = tree->root;
    while (task && LOOP_GUARD) {
        const ticket_node_t *node = TICKET_NODE(task);
        uint64_t left = node->child[0] ? TICKET_NODE(node->child[0])->sum : 0;
        if (ticket < left) {
            task = node->child[0];
        } else if (ticket - left < node->tickets) {
            return task;
        } else {
            ticket -= left + node->tickets;
            task = node->child[1];
        }
    }
    return NULL;
}

/* ---- restricted to the tasks that may run on a CPU: O(n log n) ---- */

/* Returns the number of tickets that they have. */
POLICY_RARE_FUNCTION uint64_t ticket_tree_total_on(ticket_tree_t *tree, uint32_t cpu)
{
    uint64_t total = 0;
    for (uint64_t i = LOOP_START(1); i <= tree->count && LOOP_GUARD; i++) {
        const task_t *task = ticket_tree_descend(tree, i, 0);
        if (task && task_may_run_on(task, cpu))
            total += TICKET_NODE(task)->tickets;
    }
    return total;
}

/* Returns the holder of a ticket, which is less than ticket_tree_total_on(). */
POLICY_RARE_FUNCTION task_t *ticket_tree_holder_on(ticket_tree_t *tree, uint64_t ticket,
                                                   uint32_t cpu)
{
    for (uint64_t i = LOOP_START(1); i <= tree->count && LOOP_GUARD; i++) {
        task_t *task = ticket_tree_descend(tree, i, 0);
        if (!task || !task_may_run_on(task, cpu))
            continue;
        if (ticket < TICKET_NODE(task)->tickets)
            return task;
        ticket -= TICKET_NODE(task)->tickets;
    }
    return NULL;
}

/* Returns the first such task at or after `position`, else the first one of all, or null. */
POLICY_RARE_FUNCTION task_t *ticket_tree_any_on(ticket_tree_t *tree, uint64_t position,
                                                uint32_t cpu)
{
    for (uint64_t i = LOOP_START(0); i < tree->count && LOOP_GUARD; i++) {
        task_t *task = ticket_tree_descend(tree, 1 + (position - 1 + i) % tree->count, 0);
        if (task && task_may_run_on(task, cpu))
            return task;
    }
    return NULL;
}

#endif
