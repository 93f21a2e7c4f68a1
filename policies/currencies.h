/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_CURRENCIES_H
#define SCHEDLAB_CURRENCIES_H

#include "drawing.h"

/*
 * Currencies (Waldspurger and Weihl 1994): tickets that are worth something within a group alone.
 *
 * Each group of tasks is a currency. Its weight is the number of tickets of its parent's currency
 * that it is backed by; the tickets of its tasks, and the weights of groups within it, are in its
 * own. So a task that gives itself more tickets takes from those of its currency, and from no
 * other. A draw goes from the root down: at each level one ticket is drawn among the tasks and the
 * groups there that have a task that waits. What tasks that block leave goes to the others of their
 * currency, and that of a currency without tasks to the others beside it.
 *
 * On several CPUs a group counts on each with that part of its weight that its active tickets there
 * are of all its active ones.
 *
 * A policy's queue state begins with a currency_queue, its task state with a currency_task, its
 * scheduler's with currency_sums.
 */
struct currency_task {
    struct drawing_task drawing;
    uint64_t active;   /* tickets, in units, that count in `currency`; 0: it does not compete */
    uint32_t currency; /* the group in whose tree it is or was */
};
typedef struct currency_task SHARED_MEMORY currency_task_t;

/* A currency in one run queue. What follows the tree is as the last draw found it. */
struct currency {
    struct ticket_tree tree; /* its own tasks that wait; of the root: in the drawing_queue */
    uint64_t below;          /* the weights of groups within it that wait, as they count here */
    uint64_t all;            /* its active tickets on all CPUs, with those groups */
    uint64_t weight;         /* as it counts here; 0: nothing of it waits */
    uint32_t parent;
};
typedef struct currency SHARED_MEMORY currency_t;

struct currency_queue {
    struct drawing_queue drawing;
    struct currency currency[GROUPS_MAX];
};

/* Over all CPUs; changed by atomic operations. */
struct currency_sums {
    uint64_t active[GROUPS_MAX]; /* tickets of a group's own tasks that wait or run */
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

POLICY_FUNCTION uint32_t currency_parent(const scheduler_t *scheduler, uint32_t group)
{
    uint32_t parent = scheduler->group[group % GROUPS_MAX].parent;
    return parent < group ? parent : 0;
}

/* Groups that users have set; their number only grows. */
POLICY_FUNCTION uint32_t currency_count(const scheduler_t *scheduler)
{
    return scheduler->groups < GROUPS_MAX ? scheduler->groups : GROUPS_MAX;
}

POLICY_FUNCTION uint64_t currency_backing(const scheduler_t *scheduler, uint32_t group)
{
    return (uint64_t)scheduler->group[group % GROUPS_MAX].weight * SCALE;
}

/* ---- who is active ---- */

POLICY_RARE_FUNCTION void currency_leave(run_queue_t *queue, task_t *task)
{
    currency_task_t *own = currency_task_of(task);
    struct currency_sums SHARED_MEMORY *sums = STATE_OF(queue->scheduler, struct currency_sums);
    __sync_fetch_and_add(&sums->active[own->currency % GROUPS_MAX], -own->active);
    own->active = 0;
}

POLICY_RARE_FUNCTION void currency_insert(run_queue_t *queue, task_t *task, uint64_t compensated)
{
    const currency_task_t *own = currency_task_of(task);
    uint64_t times = compensated * COMPENSATION_ONE / own->drawing.own;
    uint64_t tickets = own->active * times / COMPENSATION_ONE;
    ticket_tree_insert(currency_tree(queue, own->currency), task, tickets > 0 ? tickets : 1);
}

POLICY_RARE_FUNCTION void currency_remove(run_queue_t *queue, task_t *task)
{
    ticket_tree_remove(currency_tree(queue, currency_task_of(task)->currency), task);
}

/* What the task's tickets are worth in those of the root, as far as the last draw knew. */
POLICY_FUNCTION uint64_t currency_value(const run_queue_t *queue, const task_t *task)
{
    uint32_t group = currency_task_of(task)->currency;
    uint64_t value = currency_task_of(task)->active;
    for (uint32_t i = (uint32_t)LOOP_START(0); group > 0 && i < GROUPS_MAX && LOOP_GUARD; i++) {
        uint64_t backing = currency_backing(queue->scheduler, group);
        uint64_t all = currency_of(queue, group)->all;
        value = all > value ? value * backing / all : backing;
        group = currency_parent(queue->scheduler, group);
    }
    return value > 0 ? value : 1;
}

/* The task competes in its group's currency with so many units of tickets. Returns their value. */
POLICY_RARE_FUNCTION uint64_t currency_join(run_queue_t *queue, task_t *task, uint64_t tickets)
{
    currency_task_t *own = currency_task_of(task);
    struct currency_sums SHARED_MEMORY *sums = STATE_OF(queue->scheduler, struct currency_sums);
    currency_leave(queue, task);
    own->active = tickets;
    own->currency = task->group < queue->scheduler->groups ? task->group : 0;
    __sync_fetch_and_add(&sums->active[own->currency % GROUPS_MAX], tickets);
    return currency_value(queue, task);
}

/* ---- draws ---- */

/* The part of a group's weight that counts here, where so many of its units wait. */
POLICY_FUNCTION uint64_t currency_part(const run_queue_t *queue, uint32_t group, uint64_t waiting)
{
    uint64_t backing = currency_backing(queue->scheduler, group);
    uint64_t all = currency_of(queue, group)->all;
    if (queue->scheduler->queues == 1 || waiting >= all)
        return backing;
    uint64_t part = waiting * backing / all;
    return part > 0 ? part : 1;
}

/* Finds what waits in each currency, from the leaves up. */
POLICY_FUNCTION void currency_survey(run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    struct currency_sums SHARED_MEMORY *sums = STATE_OF(scheduler, struct currency_sums);
    uint32_t count = currency_count(scheduler);
    for (uint32_t i = (uint32_t)LOOP_START(0); i < count && LOOP_GUARD; i++) {
        currency_of(queue, i)->below = 0;
        currency_of(queue, i)->all = sums->active[i % GROUPS_MAX];
    }
    for (uint32_t i = (uint32_t)LOOP_START(1); i < count && LOOP_GUARD; i++) {
        uint32_t group = count - i;
        currency_t *own = currency_of(queue, group);
        uint64_t waiting = ticket_tree_total(&own->tree) + own->below;
        own->parent = currency_parent(scheduler, group);
        own->weight = waiting > 0 ? currency_part(queue, group, waiting) : 0;
        currency_t *parent = currency_of(queue, own->parent);
        parent->below += own->weight;
        parent->all += own->all > 0 ? currency_backing(scheduler, group) : 0;
    }
}

/* The group within `parent` that holds this one of the units of all that wait there. */
POLICY_FUNCTION uint32_t currency_holder(const run_queue_t *queue, uint32_t parent, uint64_t ticket)
{
    uint32_t holder = (uint32_t)LOOP_START(0);
    for (uint32_t group = (uint32_t)LOOP_START(1); group < GROUPS_MAX && LOOP_GUARD; group++) {
        const currency_t *own = currency_of(queue, group);
        if (own->weight == 0 || own->parent != parent)
            continue;
        holder = group;
        if (ticket < own->weight)
            break;
        ticket -= own->weight;
    }
    return holder;
}

/* Draws from the root down, and takes out the task that is drawn; null if none waits. */
POLICY_RARE_FUNCTION task_t *currency_draw(run_queue_t *queue)
{
    uint32_t group = (uint32_t)LOOP_START(0);
    currency_survey(queue);
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && LOOP_GUARD; i++) {
        ticket_tree_t *tree = currency_tree(queue, group);
        uint64_t own = ticket_tree_total(tree);
        uint64_t total = own + currency_of(queue, group)->below;
        if (total == 0)
            break;
        uint64_t ticket = random_splitmix(&drawing_queue_of(queue)->random) % total;
        queue->remark = ticket;
        if (ticket < own) {
            task_t *winner = ticket_tree_holder(tree, ticket);
            ticket_tree_remove(tree, winner);
            drawing_task_of(winner)->ticks = 0;
            return winner;
        }
        group = currency_holder(queue, group, ticket - own);
    }
    return NULL;
}

/* Returns the first task, by its group and its place there, that may run on `cpu`; or null. */
POLICY_RARE_FUNCTION task_t *currency_first_on(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = NULL;
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && !task && LOOP_GUARD; i++)
        task = ticket_tree_any_on(currency_tree(queue, i), 1, cpu);
    return task;
}

/* Returns a task of the queue, whatever its tickets, that another CPU may have; or null. */
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
