/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_CURRENCIES_H
#define SCHEDLAB_CURRENCIES_H

#include "drawing.h"
#include "group_shares.h"

/*
 * Currencies (Waldspurger and Weihl 1994): tickets that have value only within a group.
 *
 * Each group of tasks is a currency. Its weight is the number of tickets of the parent's currency
 * that back it. The tickets of its tasks, and the weights of groups within it, are in the group's
 * own currency. So a task that gives itself more tickets takes CPU time only from tasks of its
 * currency. A draw descends from the root: at each level it draws one ticket among the waiting
 * tasks and the groups with a waiting task. The share of blocked tasks goes to the other tasks of
 * their currency. The share of a currency without tasks goes to its siblings.
 *
 * On several CPUs a group's weight on one CPU is proportional to the group's active tickets there.
 *
 * A policy's queue state begins with a currency_queue, its task state with a currency_task, its
 * scheduler's with group_sums (group_shares.h), in units of tickets.
 */
struct currency_task {
    struct drawing_task drawing;
    struct group_member member; /* of the currency whose tree holds it, or held it last; tickets,
                                 * in units */
};
typedef struct currency_task SHARED_MEMORY currency_task_t;

/* A currency in one run queue. All fields after `tree` are as of the last draw. */
struct currency {
    struct ticket_tree tree; /* its waiting tasks; those of the root are in the drawing_queue */
    uint64_t below;          /* the local weights of waiting groups within it */
    uint64_t weight;         /* local weight; 0: nothing in it waits */
    uint32_t parent;
};
typedef struct currency SHARED_MEMORY currency_t;

struct currency_queue {
    struct drawing_queue drawing;
    struct currency currency[GROUPS_MAX];
    uint64_t all[GROUPS_MAX]; /* active tickets on all CPUs, and the weights of groups within */
};

POLICY_FUNCTION currency_task_t *currency_task_of(const task_t *task)
{
    return STATE_OF(task, struct currency_task);
}

POLICY_FUNCTION currency_t *currency_of(const run_queue_t *queue, uint32_t group)
{
    return &STATE_OF(queue, struct currency_queue)->currency[group % GROUPS_MAX];
}

POLICY_FUNCTION ticket_tree_t *currency_tree(const run_queue_t *queue, uint32_t group)
{
    return group == 0 ? &drawing_queue_of(queue)->tree : &currency_of(queue, group)->tree;
}

POLICY_FUNCTION group_total_t *currency_totals(const run_queue_t *queue)
{
    return STATE_OF(queue, struct currency_queue)->all;
}

/* ---- active tasks ---- */

POLICY_FUNCTION void currency_leave(run_queue_t *queue, task_t *task)
{
    group_leave(queue->scheduler, &currency_task_of(task)->member);
}

POLICY_RARE_FUNCTION void currency_insert(run_queue_t *queue, task_t *task, uint64_t compensated)
{
    const currency_task_t *state = currency_task_of(task);
    uint64_t times = compensated * COMPENSATION_ONE / state->drawing.base_units;
    uint64_t tickets = state->member.active * times / COMPENSATION_ONE;
    ticket_tree_insert(currency_tree(queue, state->member.group), task, tickets > 0 ? tickets : 1);
}

POLICY_RARE_FUNCTION void currency_remove(run_queue_t *queue, task_t *task)
{
    ticket_tree_remove(currency_tree(queue, currency_task_of(task)->member.group), task);
}

/* Makes the task compete in its group's currency with this number of ticket units. Returns their
 * value in the root's currency, as of the last draw. */
POLICY_RARE_FUNCTION uint64_t currency_join(run_queue_t *queue, task_t *task, uint64_t tickets)
{
    group_member_t *member = &currency_task_of(task)->member;
    group_join(queue->scheduler, member, task, tickets);
    return group_value(queue->scheduler, member, currency_totals(queue));
}

/* ---- draws ---- */

/* Returns the local part of a group's weight, given the number of its units that wait here. */
POLICY_FUNCTION uint64_t currency_part(const run_queue_t *queue, uint32_t group, uint64_t waiting)
{
    uint64_t backing = group_backing(queue->scheduler, group);
    uint64_t all = currency_totals(queue)[group % GROUPS_MAX];
    if (queue->scheduler->queues == 1 || waiting >= all)
        return backing;
    uint64_t part = waiting * backing / all;
    return part > 0 ? part : 1;
}

/* Updates what waits in each currency, from the leaves up. */
POLICY_FUNCTION void currency_survey(run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint32_t count = group_count(scheduler);
    group_survey(scheduler, currency_totals(queue));
    for (uint32_t i = (uint32_t)LOOP_START(0); i < count && LOOP_GUARD; i++)
        currency_of(queue, i)->below = 0;
    for (uint32_t i = (uint32_t)LOOP_START(1); i < count && LOOP_GUARD; i++) {
        uint32_t group = count - i;
        currency_t *group_state = currency_of(queue, group);
        uint64_t waiting = ticket_tree_total(&group_state->tree) + group_state->below;
        group_state->parent = group_parent(scheduler, group);
        group_state->weight = waiting > 0 ? currency_part(queue, group, waiting) : 0;
        currency_of(queue, group_state->parent)->below += group_state->weight;
    }
}

/* Returns the group within `parent` that holds this unit of all units that wait there. */
POLICY_FUNCTION uint32_t currency_holder(const run_queue_t *queue, uint32_t parent, uint64_t ticket)
{
    uint32_t holder = (uint32_t)LOOP_START(0);
    for (uint32_t group = (uint32_t)LOOP_START(1); group < GROUPS_MAX && LOOP_GUARD; group++) {
        const currency_t *group_state = currency_of(queue, group);
        if (group_state->weight == 0 || group_state->parent != parent)
            continue;
        holder = group;
        if (ticket < group_state->weight)
            break;
        ticket -= group_state->weight;
    }
    return holder;
}

/* Draws from the root down and takes out the drawn task, or returns null if none waits. */
POLICY_RARE_FUNCTION task_t *currency_draw(run_queue_t *queue)
{
    uint32_t group = (uint32_t)LOOP_START(0);
    currency_survey(queue);
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && LOOP_GUARD; i++) {
        ticket_tree_t *tree = currency_tree(queue, group);
        uint64_t base = ticket_tree_total(tree);
        uint64_t total = base + currency_of(queue, group)->below;
        if (total == 0)
            break;
        uint64_t ticket = random_splitmix(&drawing_queue_of(queue)->random) % total;
        queue->remark = ticket;
        if (ticket < base) {
            task_t *winner = ticket_tree_holder(tree, ticket);
            ticket_tree_remove(tree, winner);
            drawing_task_of(winner)->ticks = 0;
            return winner;
        }
        group = currency_holder(queue, group, ticket - base);
    }
    return NULL;
}

/* Returns the first task, ordered by group and position, that may run on `cpu`, or null. */
POLICY_RARE_FUNCTION task_t *currency_first_on(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = NULL;
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && !task && LOOP_GUARD; i++)
        task = ticket_tree_any_on(currency_tree(queue, i), 1, cpu);
    return task;
}

/* Returns any task of the queue that may move to another CPU, regardless of its tickets, or
 * null. */
POLICY_FUNCTION task_t *currency_any(run_queue_t *queue, uint32_t cpu)
{
    if (queue_bars(queue, cpu))
        return currency_first_on(queue, cpu);
    if (queue->queued == 0)
        return NULL;
    uint64_t number = random_splitmix(&drawing_queue_of(queue)->random) % queue->queued;
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && LOOP_GUARD; i++) {
        ticket_tree_t *tree = currency_tree(queue, i);
        if (number < tree->count)
            return ticket_tree_at(tree, 1 + number);
        number -= tree->count;
    }
    return NULL;
}

#endif
