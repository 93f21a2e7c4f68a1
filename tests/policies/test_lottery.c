/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * A lottery (Waldspurger and Weihl 1994) to prove the policy interface with: an
 * O(log n) draw from state that lies in the tasks.
 *
 * The queued tasks form a complete binary tree. Each holds the sum of tickets of
 * its subtree. Position 1 is the root, position p has the children 2p and 2p + 1:
 * the bits of a position after the first one are the way to it. A new task takes
 * the position after the last; the last one fills the place of one that leaves.
 */

#include "policies/placement.h"
#include "policies/policy.h"

struct lottery_task {
    task_t *parent;
    task_t *child[2];
    uint64_t tickets; /* as they were when it was enqueued */
    uint64_t sum;     /* of its subtree */
};

struct lottery_queue {
    task_t *root;
    uint64_t count;
    uint64_t random;
};

_Static_assert(sizeof(struct lottery_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct lottery_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct lottery_task SHARED_MEMORY lottery_task_t;
typedef struct lottery_queue SHARED_MEMORY lottery_queue_t;

POLICY_FUNCTION lottery_task_t *lottery_node(const task_t *task)
{
    return STATE_OF(task, struct lottery_task);
}

/* The task at a position that is taken. */
POLICY_FUNCTION task_t *lottery_at(lottery_queue_t *queue, uint64_t position)
{
    task_t *task = queue->root;
    uint64_t rest = position;
    uint32_t depth = 0;
    while (rest > 1 && LOOP_GUARD) {
        rest >>= 1;
        depth++;
    }
    while (depth > 0 && task && LOOP_GUARD) {
        depth--;
        task = lottery_node(task)->child[(position >> depth) & 1];
    }
    return task;
}

/* Adds to the sums from `task` up to the root; modulo 2^64, so that it can take away too. */
POLICY_FUNCTION void lottery_add(task_t *task, uint64_t tickets)
{
    while (task && LOOP_GUARD) {
        lottery_node(task)->sum += tickets;
        task = lottery_node(task)->parent;
    }
}

/* Makes `task` (or none) what `old` is to its parent. */
POLICY_FUNCTION void lottery_replace(lottery_queue_t *queue, task_t *old, task_t *task)
{
    task_t *parent = lottery_node(old)->parent;
    if (!parent)
        queue->root = task;
    else
        lottery_node(parent)->child[lottery_node(parent)->child[1] == old] = task;
    if (task)
        lottery_node(task)->parent = parent;
}

POLICY_FUNCTION void lottery_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    lottery_task_t *node = lottery_node(task);
    (void)reason;
    node->child[0] = NULL;
    node->child[1] = NULL;
    node->parent = NULL;
    node->tickets = task->tickets;
    node->sum = 0;
    state->count++;
    if (state->count == 1) {
        state->root = task;
    } else {
        node->parent = lottery_at(state, state->count >> 1);
        lottery_node(node->parent)->child[state->count & 1] = task;
    }
    lottery_add(task, node->tickets);
}

/* Takes the task at the last position out. */
POLICY_FUNCTION task_t *lottery_take_last(lottery_queue_t *state)
{
    task_t *last = lottery_at(state, state->count);
    lottery_add(last, -lottery_node(last)->tickets);
    lottery_replace(state, last, NULL);
    state->count--;
    return last;
}

/* Gives `task`, which is not in the tree, the place of `old`. */
POLICY_FUNCTION void lottery_take_place(lottery_queue_t *state, task_t *old, task_t *task)
{
    lottery_task_t *node = lottery_node(task);
    lottery_task_t *old_node = lottery_node(old);
    lottery_replace(state, old, task);
    node->child[0] = old_node->child[0];
    node->child[1] = old_node->child[1];
    node->sum = old_node->sum;
    if (node->child[0])
        lottery_node(node->child[0])->parent = task;
    if (node->child[1])
        lottery_node(node->child[1])->parent = task;
    lottery_add(task, node->tickets - old_node->tickets);
}

POLICY_FUNCTION void lottery_dequeue(run_queue_t *queue, task_t *task)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    task_t *last = lottery_take_last(state);
    if (last != task)
        lottery_take_place(state, task, last);
}

/* splitmix64 (Steele, Lea and Flood 2014). */
POLICY_FUNCTION uint64_t lottery_random(lottery_queue_t *queue)
{
    queue->random += 0x9e3779b97f4a7c15;
    uint64_t value = queue->random;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

/* The task that holds a ticket, counted from 0: first the left subtree's, then the task's own. */
POLICY_FUNCTION task_t *lottery_holder(task_t *task, uint64_t ticket)
{
    while (task && LOOP_GUARD) {
        const lottery_task_t *node = lottery_node(task);
        uint64_t left = node->child[0] ? lottery_node(node->child[0])->sum : 0;
        if (ticket < left) {
            task = node->child[0];
            continue;
        }
        ticket -= left;
        if (ticket < node->tickets)
            return task;
        ticket -= node->tickets;
        task = node->child[1];
    }
    return NULL;
}

POLICY_FUNCTION task_t *lottery_pick(run_queue_t *queue, uint32_t cpu)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    (void)cpu;
    if (!state->root)
        return NULL;
    uint64_t total = lottery_node(state->root)->sum;
    uint64_t ticket = total > 0 ? lottery_random(state) % total : 0;
    task_t *winner = lottery_holder(state->root, ticket);
    if (winner)
        lottery_dequeue(queue, winner);
    queue->remark = ticket;
    return winner;
}

POLICY_FUNCTION enum tick_verdict lottery_tick(run_queue_t *queue, task_t *task)
{
    (void)queue, (void)task;
    return TICK_PREEMPT;
}

POLICY_FUNCTION uint64_t lottery_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler, (void)task;
    return 1;
}

POLICY_FUNCTION void lottery_queue_init(run_queue_t *queue)
{
    STATE_OF(queue, struct lottery_queue)->random =
        queue->scheduler->seed + ((uint64_t)queue->cpu << 32);
}

POLICY_DEFINITION policy_test_lottery = {
    .name = "test-lottery",
    .meaning = "a lottery with a draw in O(log n)",
    .source = "Waldspurger and Weihl 1994",
    .enqueue = lottery_enqueue,
    .dequeue = lottery_dequeue,
    .pick = lottery_pick,
    .tick = lottery_tick,
    .time_slice = lottery_time_slice,
    .queue_init = lottery_queue_init,
};
