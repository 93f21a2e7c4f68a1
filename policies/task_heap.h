/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_TASK_HEAP_H
#define SCHEDLAB_TASK_HEAP_H

#include "policy.h"

/*
 * A heap of tasks: the task with the smallest key is taken first; for equal keys, the task with the
 * lowest PID. It is a leftist heap (Crane 1972): a binary tree where each task precedes its
 * children. Its rightmost path is the shortest path down, of at most log2(n + 1) tasks. Two heaps
 * are merged along these paths, and all other operations use the merge. So every operation is O(log
 * n).
 *
 * The tree lies in the tasks: a policy's task state begins with its node.
 */
struct task_heap_node {
    uint64_t key;
    task_t *parent;
    task_t *left;
    task_t *right;
    uint64_t rank; /* length of the shortest path down, this task included */
};

struct task_heap {
    task_t *first;
};

typedef struct task_heap_node SHARED_MEMORY task_heap_node_t;
typedef struct task_heap SHARED_MEMORY task_heap_t;

POLICY_FUNCTION task_heap_node_t *task_heap_node(const task_t *task)
{
    return STATE_OF(task, struct task_heap_node);
}

/* Keys may wrap around: only their difference counts, which must be below 2^63. */
POLICY_FUNCTION bool task_heap_before(const task_t *task, const task_t *other)
{
    int64_t difference = (int64_t)(task_heap_node(task)->key - task_heap_node(other)->key);
    return difference != 0 ? difference < 0 : task->pid < other->pid;
}

/* Moves the shorter subtree to the right. Returns false if the task's rank did not change. */
POLICY_FUNCTION bool task_heap_mend(task_t *task)
{
    task_heap_node_t *node = task_heap_node(task);
    uint64_t left = node->left ? task_heap_node(node->left)->rank : 0;
    uint64_t right = node->right ? task_heap_node(node->right)->rank : 0;
    uint64_t rank = (left < right ? left : right) + 1;
    if (left < right) {
        task_t *child = node->left;
        node->left = node->right;
        node->right = child;
    }
    bool changed = rank != node->rank;
    node->rank = rank;
    return changed;
}

/* Merges two heaps; either may be null. Returns the first task. */
POLICY_FUNCTION task_t *task_heap_meld(task_t *one, task_t *other)
{
    task_t *root = NULL;
    task_t *last = NULL; /* of the rightmost path, so far */
    while ((one || other) && LOOP_GUARD) {
        bool take_one = !other || (one && task_heap_before(one, other));
        task_t *next = take_one ? one : other;
        task_heap_node(next)->parent = last;
        if (last)
            task_heap_node(last)->right = next;
        else
            root = next;
        if (!one || !other)
            break; /* the rest keeps its place */
        last = next;
        if (take_one)
            one = task_heap_node(one)->right;
        else
            other = task_heap_node(other)->right;
    }
    while (last && LOOP_GUARD) {
        task_heap_mend(last);
        last = task_heap_node(last)->parent;
    }
    return root;
}

POLICY_FUNCTION void task_heap_insert(task_heap_t *heap, task_t *task, uint64_t key)
{
    task_heap_node_t *node = task_heap_node(task);
    node->key = key;
    node->left = NULL;
    node->right = NULL;
    node->rank = 1;
    heap->first = task_heap_meld(heap->first, task);
}

/* Takes out a task that is in the heap. */
POLICY_FUNCTION void task_heap_remove(task_heap_t *heap, task_t *task)
{
    task_heap_node_t *node = task_heap_node(task);
    task_t *parent = node->parent;
    task_t *rest = task_heap_meld(node->left, node->right);
    if (rest)
        task_heap_node(rest)->parent = parent;
    if (!parent)
        heap->first = rest;
    else if (task_heap_node(parent)->left == task)
        task_heap_node(parent)->left = rest;
    else
        task_heap_node(parent)->right = rest;
    /* Each changed rank is one above the previous: there are few. */
    while (parent && task_heap_mend(parent) && LOOP_GUARD)
        parent = task_heap_node(parent)->parent;
}

/* Returns the first task that may run on `cpu` of a heap whose first task may not, or null.
 * Searches only below tasks that may not run there: one or two steps for each of them. */
POLICY_RARE_FUNCTION task_t *task_heap_search_on(task_t *root, uint32_t cpu)
{
    task_t *best = NULL;
    const task_t *from = NULL;
    while (root && LOOP_GUARD) {
        const task_heap_node_t *node = task_heap_node(root);
        bool moves_down = from == node->parent;
        bool better = moves_down && (!best || task_heap_before(root, best));
        bool may_run = task_may_run_on(root, cpu);
        task_t *next = node->parent;
        if (better && may_run)
            best = root;
        else if (better && node->left)
            next = node->left;
        else if (!moves_down && from == node->left && node->right)
            next = node->right;
        from = root;
        root = next;
    }
    return best;
}

/* Returns the first task that may run on `cpu`, or null if there is none. (Inline: BPF allows at
 * most eight nested calls.) */
static inline __attribute__((always_inline, unused)) task_t *
task_heap_first_on(const task_heap_t *heap, uint32_t cpu)
{
    task_t *first = heap->first;
    return !first || task_may_run_on(first, cpu) ? first : task_heap_search_on(first, cpu);
}

/* Takes out the first task that may run on `cpu`. Returns null if there is none. */
POLICY_FUNCTION task_t *task_heap_take_first_on(task_heap_t *heap, uint32_t cpu)
{
    task_t *task = task_heap_first_on(heap, cpu);
    if (task)
        task_heap_remove(heap, task);
    return task;
}

/* Returns the task that would be taken after the first; null: none. */
POLICY_FUNCTION task_t *task_heap_second(const task_heap_t *heap)
{
    const task_heap_node_t *first = task_heap_node(heap->first);
    if (!first->right)
        return first->left;
    return task_heap_before(first->right, first->left) ? first->right : first->left;
}

#endif
