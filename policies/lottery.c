/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Lottery: the next task is drawn by lot; a task's chance is its part of the tickets.
 *
 * A tree of tickets for each CPU (ticket_tree.h) makes a draw O(log n). Draws are independent: on
 * one CPU each task's expected share is its part of the tickets. On several CPUs tasks change
 * places so that each gets its part of the whole machine (fair_shares.h). A task that blocks holds
 * more tickets while it competes (drawing.h).
 *
 * `transfers`: a task that waits for another lends its tickets, including tickets lent to it. So a
 * server works with the tickets of the clients that wait for it. The host knows the wait graph.
 *
 * `overtake`: of the tasks that wait for the same lock or channel, the next owner is drawn by lot,
 * too. With `transfers` that is the mutex of 1994.
 *
 * `currencies`: tickets count within the task's group, and groups share by their weights
 * (currencies.h). There is no compensation: a task that blocks would be compensated only within its
 * group.
 *
 * `nice`: the weight of a task's nice level is its number of tickets. With `currencies`, a task of
 * nice 0 counts as a group of weight 100.
 *
 * The lotteries of studies 1 and 3 are presets, too: studies/study-lottery.c.
 */

#include "currencies.h"
#include "drawing.h"
#include "placement.h"
#include "policy.h"

#include "policies/linux_commands.h"

enum {
    LOTTERY_WEIGHT_TICKETS = DRAWING_TUNABLE_COUNT,
    LOTTERY_TRANSFERS,
    LOTTERY_CURRENCIES,
    LOTTERY_OVERTAKE,
    LOTTERY_NICE
};

static const struct tunable lottery_tunables[] = {
    DRAWING_TUNABLES,
    [LOTTERY_WEIGHT_TICKETS] = {"weight_tickets", "1: a task's weight is its number of tickets", 0,
                                0, 1},
    [LOTTERY_TRANSFERS] = {"transfers", "1: a task that waits for another lends it its tickets", 0,
                           0, 1},
    [LOTTERY_CURRENCIES] = {"currencies", "1: tickets count within groups, which share by weight",
                            0, 0, 1},
    [LOTTERY_OVERTAKE] = {"overtake",
                          "1: the next owner of a lock is drawn among the tasks that wait for it",
                          0, 0, 1},
    [LOTTERY_NICE] = {"nice", "1: the weight of a task's nice level is its number of tickets", 0, 0,
                      1},
};

static const struct preset lottery_presets[] = {
    {"transfers", "a task that waits for another lends it its tickets", {{"transfers", 1}}},
    {"currencies",
     "each group is a currency: tickets count within it, its weight among other groups",
     {{"currencies", 1}, {"compensation", 1}}},
    {"linux",
     "study 5: the weight, 1 to 10, is the number of tickets",
     {{"weight_tickets", 1}, {"compensation", 1}}},
};

_Static_assert(sizeof(struct currency_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct currency_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

/* Returns the tickets that users gave to `task`. */
POLICY_FUNCTION uint64_t lottery_given(const scheduler_t *scheduler, const task_t *task)
{
    if (scheduler->tunable[LOTTERY_NICE])
        return nice_weight(task->nice);
    return scheduler->tunable[LOTTERY_WEIGHT_TICKETS] ? task->weight : task->tickets;
}

/* A hook: scheduler_init(). */
POLICY_FUNCTION void lottery_scheduler_init(scheduler_t *scheduler)
{
    scheduler->follows_waits = scheduler->tunable[LOTTERY_TRANSFERS] != 0;
    group_sums_of(scheduler)->unit = scheduler->tunable[LOTTERY_NICE] ? NICE_GROUP_UNIT : SCALE;
    scheduler->orders_waiters = scheduler->tunable[LOTTERY_OVERTAKE] != 0;
}

/* Recomputes the tickets that waiting tasks lend to the owner. */
POLICY_FUNCTION bool lottery_waiters_changed(run_queue_t *queue, task_t *owner)
{
    uint64_t before = owner->lent;
    owner->lent = 0;
    for (const task_t *waiter = owner->first_waiter; waiter && LOOP_GUARD;
         waiter = waiter->next_waiter)
        owner->lent += lottery_given(queue->scheduler, waiter) + waiter->lent;
    return owner->lent != before;
}

/* Replaces the choice so far with a probability of the waiter's part of all tickets so far. So
 * in the end each waiter's chance is its part of all tickets. */
POLICY_FUNCTION bool lottery_overtakes(run_queue_t *queue, const task_t *waiter,
                                       const task_t *chosen)
{
    drawing_queue_t *state = drawing_queue_of(queue);
    uint64_t tickets = lottery_given(queue->scheduler, waiter) + waiter->lent;
    state->drawn_from = (chosen ? state->drawn_from : 0) + tickets;
    return chosen && random_splitmix(&state->random) % state->drawn_from < tickets;
}

POLICY_FUNCTION bool lottery_has_currencies(const run_queue_t *queue)
{
    return queue->scheduler->tunable[LOTTERY_CURRENCIES] != 0;
}

/* Returns the units of a ticket: several if a task's tickets may be multiplied. */
POLICY_FUNCTION uint64_t lottery_unit(const scheduler_t *scheduler)
{
    bool divided = scheduler->tunable[LOTTERY_CURRENCIES] != 0;
    if (divided && scheduler->tunable[LOTTERY_NICE])
        return NICE_UNIT;
    return scheduler->tunable[DRAWING_COMPENSATION] > 1 || divided ? SCALE : 1;
}

/* With currencies, tasks are compared by the value of their tickets. */
POLICY_FUNCTION void lottery_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t base = (lottery_given(scheduler, task) + task->lent) * lottery_unit(scheduler);
    if (lottery_has_currencies(queue))
        base = currency_join(queue, task, base);
    drawing_join(queue, task, reason, base);
    uint64_t tickets = drawing_compensated(queue, drawing_task_of(task));
    if (lottery_has_currencies(queue))
        currency_insert(queue, task, tickets);
    else
        ticket_tree_insert(&drawing_queue_of(queue)->tree, task, tickets > 0 ? tickets : 1);
}

POLICY_FUNCTION void lottery_dequeue(run_queue_t *queue, task_t *task)
{
    if (lottery_has_currencies(queue)) {
        currency_remove(queue, task);
        currency_leave(queue, task);
    } else {
        ticket_tree_remove(&drawing_queue_of(queue)->tree, task);
    }
    drawing_leave(queue, task);
}

/* A hook. */
POLICY_FUNCTION void lottery_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    drawing_stopped(queue, task, reason);
    if (reason != STOP_RUNNABLE && lottery_has_currencies(queue))
        currency_leave(queue, task);
}

/* Draws a ticket; its holder runs. */
POLICY_FUNCTION task_t *lottery_pick(run_queue_t *queue, uint32_t cpu)
{
    drawing_queue_t *state = drawing_queue_of(queue);
    (void)cpu;
    if (lottery_has_currencies(queue))
        return currency_draw(queue);
    uint64_t total = ticket_tree_total(&state->tree);
    if (total == 0)
        return NULL;
    uint64_t ticket = random_splitmix(&state->random) % total;
    task_t *winner = ticket_tree_holder(&state->tree, ticket);
    queue->remark = ticket;
    ticket_tree_remove(&state->tree, winner);
    drawing_task_of(winner)->ticks = 0;
    return winner;
}

POLICY_FUNCTION uint32_t lottery_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    return idle ? balance_longest(scheduler, cpu, idle) : shares_next_cpu(scheduler, cpu);
}

POLICY_FUNCTION task_t *lottery_steal(run_queue_t *queue, uint32_t cpu)
{
    task_t *task =
        lottery_has_currencies(queue) ? currency_any(queue, cpu) : drawing_any(queue, cpu);
    bool idle = queue_load(queue->scheduler->queue[cpu]) == 0;
    if (!task || (!idle && !drawing_move_pays(queue, task, cpu)))
        return NULL;
    lottery_dequeue(queue, task);
    return task;
}

POLICY_FUNCTION enum share_attribute lottery_shares_by(const scheduler_t *scheduler)
{
    bool nice = scheduler->tunable[LOTTERY_NICE] != 0;
    if (scheduler->tunable[LOTTERY_CURRENCIES])
        return nice ? SHARES_BY_GROUPS : SHARES_BY_CURRENCIES;
    if (nice)
        return SHARES_BY_NICE;
    return scheduler->tunable[LOTTERY_WEIGHT_TICKETS] ? SHARES_BY_WEIGHT : SHARES_BY_TICKETS;
}

POLICY_DEFINITION policy_lottery = {
    .name = "lottery",
    .meaning = "a draw by lot; a task's chance is its part of the tickets",
    .source = "Waldspurger and Weihl 1994",
    .order = "Each draw picks one ticket: a task that holds more of them is picked more often.",
    .remark = "ticket {}",
    .remark_kind = REMARK_TICKET,
    .cost = COST_LOGARITHMIC,
    .reads = "tickets:weight_tickets=0 weight:weight_tickets=1 nice:nice=1 "
             "taskgroup:currencies=1",
    .tunables = lottery_tunables,
    .tunable_count = sizeof(lottery_tunables) / sizeof(lottery_tunables[0]),
    .presets = lottery_presets,
    .by_number = "linux",
    .preset_count = sizeof(lottery_presets) / sizeof(lottery_presets[0]),
    .commands = &linux_commands,
    .by_groups = GROUPS_BY_TUNABLE,
    .rounds = 40,
    .task_bytes = sizeof(struct currency_task),
    .enqueue = lottery_enqueue,
    .dequeue = lottery_dequeue,
    .pick = lottery_pick,
    .tick = drawing_tick,
    .time_slice = drawing_time_slice,
    .scheduler_init = lottery_scheduler_init,
    .queue_init = drawing_queue_init,
    .stopped = lottery_stopped,
    .waiters_changed = lottery_waiters_changed,
    .overtakes = lottery_overtakes,
    .place = shares_place,
    .balance = lottery_balance,
    .steal = lottery_steal,
    .shares_by = lottery_shares_by,
    .tickets = lottery_given,
    .ticket_parts = lottery_unit,
};
