/* SPDX-License-Identifier: MIT */

/* Tests that the heap of tasks returns them in key order, and is as flat as promised. */

#include <string.h>

#include "../../policies/task_heap.h"
#include "check.h"
#include "random.h"

#define TASKS 600

static struct task tasks[TASKS];
static struct task_heap_node nodes[TASKS];
static bool inside[TASKS];
static uint32_t count;
static struct task_heap heap;

/* Tasks that may run on CPU 0, and tasks that may run only on CPU 1. */
static const struct cpu_set sets[] = {{{3}}, {{2}}};

static void begin(void)
{
    memset(nodes, 0xee, sizeof(nodes)); /* a node's old content is irrelevant */
    memset(inside, 0, sizeof(inside));
    heap.first = NULL;
    count = 0;
    for (int i = 0; i < TASKS; i++)
        tasks[i] = (struct task){
            .pid = i + 1, .state = &nodes[i], .cpus = i % 4 ? &sets[i % 4 < 3] : NULL};
}

static void insert(uint32_t i, uint64_t key)
{
    check(!inside[i]);
    task_heap_insert(&heap, &tasks[i], key);
    inside[i] = true;
    count++;
}

static void take_out(uint32_t i)
{
    check(inside[i]);
    inside[i] = false;
    count--;
}

/* Returns the first task for the CPU, by a search of all tasks; null: none. */
static struct task *first_of_all_on(uint32_t cpu)
{
    struct task *first = NULL;
    for (uint32_t i = 0; i < TASKS; i++) {
        if (inside[i] && task_may_run_on(&tasks[i], cpu) &&
            (!first || (int64_t)(nodes[i].key - nodes[first->pid - 1].key) < 0))
            first = &tasks[i]; /* for equal keys, the lowest PID, which is first here */
    }
    return first;
}

static struct task *first_of_all(void)
{
    return first_of_all_on(NO_CPU);
}

/* Checks the tree below `task`, and returns the number of its tasks. */
static uint32_t check_tree(struct task *task, struct task *parent)
{
    if (!task)
        return 0;
    struct task_heap_node *node = &nodes[task->pid - 1];
    uint64_t left = node->left ? nodes[node->left->pid - 1].rank : 0;
    uint64_t right = node->right ? nodes[node->right->pid - 1].rank : 0;
    check(inside[task->pid - 1] && node->parent == parent);
    check(!parent || task_heap_before(parent, task));
    check(left >= right && node->rank == right + 1);
    uint32_t below = check_tree(node->left, task) + check_tree(node->right, task);
    check(below + 1 >= (1u << node->rank) - 1); /* so a rank is at most log2(n + 1) */
    return below + 1;
}

static void check_heap(void)
{
    check(check_tree(heap.first, NULL) == count);
    struct task *first = first_of_all();
    check(heap.first == first);
    for (uint32_t cpu = 0; cpu < 3; cpu++)
        check(task_heap_first_on(&heap, cpu) == first_of_all_on(cpu));
    if (!first)
        return;
    inside[first->pid - 1] = false;
    check(task_heap_second(&heap) == first_of_all());
    inside[first->pid - 1] = true;
}

static void keys_come_in_order(void)
{
    begin();
    check(!task_heap_take_first_on(&heap, NO_CPU));
    for (uint32_t i = 0; i < TASKS; i++)
        insert(i, (i * 7919) % 50);
    check_heap();
    struct task *last = task_heap_take_first_on(&heap, NO_CPU);
    take_out((uint32_t)last->pid - 1);
    while (count > 0) {
        struct task *task = task_heap_take_first_on(&heap, NO_CPU);
        take_out((uint32_t)task->pid - 1);
        uint64_t key = nodes[task->pid - 1].key, last_key = nodes[last->pid - 1].key;
        check(key > last_key || (key == last_key && task->pid > last->pid));
        last = task;
    }
    check(!task_heap_take_first_on(&heap, NO_CPU));
}

static void any_order_of_work_keeps_the_heap(uint64_t range, uint64_t base)
{
    begin();
    for (int step = 0; step < 20000; step++) {
        uint32_t i = (uint32_t)random_below(TASKS);
        if (inside[i] && random_below(2)) {
            task_heap_remove(&heap, &tasks[i]);
            take_out(i);
        } else if (inside[i]) {
            struct task *first = first_of_all();
            check(task_heap_take_first_on(&heap, NO_CPU) == first);
            take_out((uint32_t)first->pid - 1);
        } else {
            insert(i, base + random_below(range));
        }
        if (step % 64 == 0)
            check_heap();
    }
    check_heap();
}

static void work_in_random_order(void)
{
    any_order_of_work_keeps_the_heap(1000000, 0);
}

static void many_equal_keys(void)
{
    any_order_of_work_keeps_the_heap(3, 7);
}

static void keys_wrap_around(void)
{
    any_order_of_work_keeps_the_heap(1000, UINT64_MAX - 500);
}

/* The longest chains of a leftist heap: falling keys make a chain to the left. */
static void chains_cost_no_more(void)
{
    begin();
    for (uint32_t i = 0; i < TASKS; i++)
        insert(i, TASKS - i);
    check_heap();
    for (uint32_t i = 0; i < TASKS; i += 2) {
        task_heap_remove(&heap, &tasks[i]);
        take_out(i);
    }
    check_heap();
}

int main(void)
{
    run_test(keys_come_in_order);
    run_test(work_in_random_order);
    run_test(many_equal_keys);
    run_test(keys_wrap_around);
    run_test(chains_cost_no_more);
    return 0;
}
