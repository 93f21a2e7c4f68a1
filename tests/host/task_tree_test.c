/* SPDX-License-Identifier: MIT */

/*
 * Tests that the tree of tasks stays sorted and balanced, and knows its least values, after any
 * operations. Also tests that the weights of nice levels match Linux.
 */

#include <string.h>

#include "../../policies/nice_weights.h"
#include "../../policies/task_tree.h"
#include "check.h"
#include "random.h"

#define TASKS 400

static struct task tasks[TASKS];
static struct task_tree_node nodes[TASKS];
static bool inside[TASKS];
static uint32_t count;
static struct task_tree tree;

/* Tasks that may run on CPU 0, and tasks that may run only on CPU 1. */
static const struct cpu_set sets[] = {{{3}}, {{2}}};

static void begin(void)
{
    memset(nodes, 0xee, sizeof(nodes)); /* a node's old content is irrelevant */
    memset(inside, 0, sizeof(inside));
    tree.root = NULL;
    count = 0;
    for (int i = 0; i < TASKS; i++)
        tasks[i] = (struct task){
            .pid = i + 1, .state = &nodes[i], .cpus = i % 4 ? &sets[i % 4 < 3] : NULL};
}

static void insert(uint32_t i, uint64_t key, uint64_t value)
{
    task_tree_insert(&tree, &tasks[i], key, value, value % 97);
    inside[i] = true;
    count++;
}

static void take_out(uint32_t i)
{
    task_tree_remove(&tree, &tasks[i]);
    inside[i] = false;
    count--;
}

static bool is_less(uint64_t one, uint64_t other)
{
    return (int64_t)(one - other) < 0;
}

/*
 * Returns the first task that may run on the CPU and has a low value (`any`: any value), by a
 * search of all tasks; null: none.
 */
static struct task *first_of_all_on(uint64_t limit, bool any, uint32_t cpu)
{
    struct task *first = NULL;
    for (uint32_t i = 0; i < TASKS; i++) {
        if (inside[i] && task_may_run_on(&tasks[i], cpu) &&
            (any || !is_less(limit, nodes[i].value)) &&
            (!first || is_less(nodes[i].key, nodes[first->pid - 1].key)))
            first = &tasks[i]; /* for equal keys, the lowest PID, which is first here */
    }
    return first;
}

static struct task *first_of_all(uint64_t limit)
{
    return first_of_all_on(limit, false, NO_CPU);
}

struct seen {
    uint32_t tasks;
    uint64_t height;
    uint64_t least;
    uint64_t least_other;
};

/* Checks the tree below `task`. */
static struct seen check_tree(struct task *task, struct task *parent)
{
    if (!task)
        return (struct seen){0, 0, 0, UINT64_MAX};
    const struct task_tree_node *node = &nodes[task->pid - 1];
    check(inside[task->pid - 1] && node->parent == parent);
    check(!node->child[0] || task_tree_before(node->child[0], task));
    check(!node->child[1] || task_tree_before(task, node->child[1]));
    struct seen before = check_tree(node->child[0], task);
    struct seen after = check_tree(node->child[1], task);
    struct seen seen = {before.tasks + 1 + after.tasks, node->height, node->value, node->other};
    check(before.height <= after.height + 1 && after.height <= before.height + 1);
    check(node->height == 1 + (before.height > after.height ? before.height : after.height));
    if (before.tasks > 0 && is_less(before.least, seen.least))
        seen.least = before.least;
    if (after.tasks > 0 && is_less(after.least, seen.least))
        seen.least = after.least;
    if (before.least_other < seen.least_other)
        seen.least_other = before.least_other;
    if (after.least_other < seen.least_other)
        seen.least_other = after.least_other;
    check(node->least == seen.least && node->least_other == seen.least_other);
    return seen;
}

static void any_order_of_work_keeps_the_tree(uint64_t range, uint64_t base)
{
    begin();
    for (int step = 0; step < 12000; step++) {
        uint32_t i = (uint32_t)random_below(TASKS);
        if (inside[i])
            take_out(i);
        else
            insert(i, base + random_below(range), base + random_below(range));
        if (step % 64 == 0)
            check(check_tree(tree.root, NULL).tasks == count);
        uint64_t limit = base + random_below(range);
        check(task_tree_first(&tree, limit) == first_of_all(limit));
        const struct task *first = first_of_all_on(limit, false, step % 3);
        check(task_tree_search_on(&tree, limit, step % 3) ==
              (first ? first : first_of_all_on(limit, true, step % 3)));
    }
    while (tree.root)
        take_out((uint32_t)tree.root->pid - 1);
    check(count == 0);
}

static void work_in_random_order(void)
{
    any_order_of_work_keeps_the_tree(1000000, 0);
}

static void many_equal_keys(void)
{
    any_order_of_work_keeps_the_tree(3, 7);
}

static void keys_wrap_around(void)
{
    any_order_of_work_keeps_the_tree(1000, UINT64_MAX - 500);
}

/* With rising or falling keys, the height is at most 1.44 times the logarithm. */
static void sorted_keys_cost_no_more(void)
{
    for (uint64_t falling = 0; falling < 2; falling++) {
        begin();
        for (uint32_t i = 0; i < TASKS; i++)
            insert(i, falling ? TASKS - i : i, i);
        check(check_tree(tree.root, NULL).height <= 12);
        for (uint32_t i = 0; i < TASKS; i += 2)
            take_out(i);
        check(check_tree(tree.root, NULL).height <= 11);
    }
}

static void an_empty_tree_has_no_first(void)
{
    begin();
    check(!task_tree_first(&tree, 0));
    insert(0, 5, 10);
    check(!task_tree_first(&tree, 9) && task_tree_first(&tree, 10) == &tasks[0]);
}

/* Nice 0 has 1024, and each further level divides by 1.25, rounded to whole numbers. */
static void weights_fall_by_a_quarter(void)
{
    check(nice_weight(0) == 1024 && nice_weight(-20) == 88761 && nice_weight(19) == 15);
    for (int32_t nice = NICE_FIRST; nice < NICE_LAST; nice++) {
        double ratio = (double)nice_weight(nice) / (double)nice_weight(nice + 1);
        double rounding = 1.5 / (double)nice_weight(nice + 1);
        check(ratio > 1.25 * (1 - rounding) - 0.03 && ratio < 1.25 * (1 + rounding) + 0.03);
    }
    check(nice_weight(NICE_LAST + 1) == 1024 && nice_weight(NICE_FIRST - 1) == 1024);
}

int main(void)
{
    run_test(work_in_random_order);
    run_test(many_equal_keys);
    run_test(keys_wrap_around);
    run_test(sorted_keys_cost_no_more);
    run_test(an_empty_tree_has_no_first);
    run_test(weights_fall_by_a_quarter);
    return 0;
}
