/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Lottery: who runs next is drawn by lot; a task's chance is its part of the tickets.
 *
 * As shipped: a tree of tickets for each CPU (ticket_tree.h) makes a draw O(log n). Draws
 * are independent of each other: on one CPU each task's share is its part of the
 * tickets, as far as chance allows. On several CPUs tasks change places so that
 * each gets its part of the whole machine (fair_shares.h). A task that blocks holds
 * more tickets while it competes (compensation.h).
 *
 * The presets are the lotteries of three studies; the tunables, what these propose.
 */

#include "compensation.h"
#include "fair_shares.h"
#include "placement.h"
#include "policy.h"
#include "random.h"
#include "task_list.h"
#include "ticket_tree.h"

enum {
    LOTTERY_SLICE,
    LOTTERY_GENERATOR,
    LOTTERY_FIXED_TICKETS,
    LOTTERY_WEIGHT_TICKETS,
    LOTTERY_TABLE_SCAN,
    LOTTERY_PLACEMENT,
    LOTTERY_BALANCE,
    LOTTERY_BALANCE_INTERVAL,
    LOTTERY_HORIZON,
    LOTTERY_COMPENSATION,
    LOTTERY_ADAPTATION,
    LOTTERY_DECAY_INTERVAL,
    LOTTERY_RECENT_PENALTY,
    LOTTERY_WAIT_LIMIT,
    LOTTERY_NEWCOMER_LIMIT,
};

enum { GENERATOR_SPLITMIX, GENERATOR_LCG, GENERATOR_LFSR16 };
enum { PLACE_FEWEST_TASKS, PLACE_FEWEST_TICKETS };
enum { BALANCE_NONE, BALANCE_PERIODIC, BALANCE_SHARES };

static const struct tunable lottery_tunables[] = {
    [LOTTERY_SLICE] = {"slice", "ticks that the winner of a draw runs", 1, 1, 1000},
    [LOTTERY_GENERATOR] = {"generator", "of random numbers: 0 splitmix64, 1 lcg, 2 lfsr16", 0, 0,
                           2},
    [LOTTERY_FIXED_TICKETS] = {"fixed_tickets", "tickets that every task holds; 0: its own", 0, 0,
                               TICKETS_MAX},
    [LOTTERY_WEIGHT_TICKETS] = {"weight_tickets", "1: a task's weight is its number of tickets", 0,
                                0, 1},
    [LOTTERY_TABLE_SCAN] = {"table_scan", "1: one queue for all CPUs, tickets in order of slots", 0,
                            0, 1},
    [LOTTERY_PLACEMENT] = {"placement", "a new task goes where the fewest 0: tasks, 1: tickets are",
                           0, 1, 1},
    [LOTTERY_BALANCE] = {"balance",
                         "0: tasks stay on their CPU, 1: sums are evened, 2: fair shares", 0, 2, 2},
    [LOTTERY_BALANCE_INTERVAL] = {"balance_interval", "ticks from one evening of sums to the next",
                                  1, 100, 100000},
    [LOTTERY_HORIZON] = {"horizon", "ticks ahead for which fair shares are foreseen", 1, 16, 10000},
    [LOTTERY_COMPENSATION] = {"compensation",
                              "times its tickets that a task that blocks counts at most; 1: off", 1,
                              256, 1024},
    [LOTTERY_ADAPTATION] = {"adaptation",
                            "percent more tickets if I/O-bound, fewer if CPU-bound; 0: off", 0, 0,
                            99},
    [LOTTERY_DECAY_INTERVAL] = {"decay_interval",
                                "decisions until recent selections count 3/4; 0: not counted", 0, 0,
                                100000},
    [LOTTERY_RECENT_PENALTY] = {"recent_penalty",
                                "percent that a recent selection divides tickets by; 0: none", 0, 0,
                                1000},
    [LOTTERY_WAIT_LIMIT] = {"wait_limit", "ticks of waiting after which a task is next; 0: none", 0,
                            0, 1000000},
    [LOTTERY_NEWCOMER_LIMIT] = {"newcomer_limit",
                                "ticks within which a new task has its first turn; 0: none", 0, 0,
                                1000000},
};

/* Study 1's loop (section 3.2) shuffles the array that it draws from, which changes no
 * chances, and counts recent selections, which do not enter the draw. */
static const struct preset lottery_presets[] = {
    {"thesis",
     "study 1: per CPU, placed by tickets, never moved; LCG; recent selections are only counted",
     {{"generator", GENERATOR_LCG},
      {"balance", BALANCE_NONE},
      {"compensation", 1},
      {"decay_interval", 100}}},
    {"equal-lfsr",
     "study 3: 100 tickets each, drawn with a 16-bit LFSR from one process table",
     {{"generator", GENERATOR_LFSR16},
      {"fixed_tickets", 100},
      {"table_scan", 1},
      {"compensation", 1}}},
    {"linux",
     "study 5: the weight, 1 to 10, is the number of tickets",
     {{"weight_tickets", 1}, {"compensation", 1}}},
};

struct lottery_task {
    struct ticket_node node;    /* what it holds in draws, in units */
    struct share_member member; /* as what it counts when CPUs are compared */
    struct run_history history;
    uint64_t own;           /* its own tickets, in units, as long as it competes; else 0 */
    uint32_t recent;        /* selections, decayed, in parts of RECENT_ONE */
    uint32_t decayed_until; /* the number of decays that `recent` has seen */
    uint32_t ticks;         /* of the slice, used */
    bool newcomer;          /* was never picked */
    bool fresh;             /* has not used up a turn since it woke */
};

struct lottery_queue {
    struct share_queue shares;
    struct ticket_tree tree;
    struct task_list waiting;   /* in the order of enqueueing; by slots with a table scan */
    struct task_list newcomers; /* likewise, those that were never picked, if there is a limit */
    uint64_t newcomer_count;
    uint64_t own; /* the own tickets of all that compete here, in units */
    uint64_t random;
    uint64_t decisions;
    uint64_t ticked; /* when the latest tick was */
};

_Static_assert(sizeof(struct lottery_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct lottery_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct lottery_task SHARED_MEMORY lottery_task_t;
typedef struct lottery_queue SHARED_MEMORY lottery_queue_t;

/* ---- a task's tickets ---- */

#define HISTORY_TICKS 64  /* of a task's life, which decide its compensation */
#define SCALE         64  /* units of a ticket, where tickets are multiplied */
#define RECENT_ONE    256 /* of one selection, so that one decays too */

/* Divides a ticket only if something multiplies tickets: narrow generators reach more then. */
POLICY_FUNCTION uint64_t lottery_unit(const scheduler_t *scheduler)
{
    bool multiplies = scheduler->tunable[LOTTERY_COMPENSATION] > 1 ||
                      scheduler->tunable[LOTTERY_ADAPTATION] > 0 ||
                      scheduler->tunable[LOTTERY_RECENT_PENALTY] > 0;
    return multiplies ? SCALE : 1;
}

/* The tickets that `task` was given. */
POLICY_FUNCTION uint64_t lottery_given(const scheduler_t *scheduler, const task_t *task)
{
    if (scheduler->tunable[LOTTERY_FIXED_TICKETS])
        return (uint64_t)scheduler->tunable[LOTTERY_FIXED_TICKETS];
    return scheduler->tunable[LOTTERY_WEIGHT_TICKETS] ? task->weight : task->tickets;
}

/* The same, in units. */
POLICY_FUNCTION uint64_t lottery_own_tickets(const scheduler_t *scheduler, const task_t *task)
{
    return lottery_given(scheduler, task) * lottery_unit(scheduler);
}

POLICY_FUNCTION uint64_t lottery_window(const run_queue_t *queue)
{
    return HISTORY_TICKS * queue->scheduler->tick_ns;
}

/* The turn ends before its time, which is a tick: the task was entitled to the rest. */
POLICY_FUNCTION void lottery_cut_short(const run_queue_t *queue, task_t *task)
{
    lottery_task_t *state = STATE_OF(task, struct lottery_task);
    uint64_t ticks = (uint64_t)queue->scheduler->tunable[LOTTERY_SLICE] - state->ticks;
    uint64_t end =
        STATE_OF(queue, struct lottery_queue)->ticked + ticks * queue->scheduler->tick_ns;
    if (end > queue->now)
        state->history.cut_off = end - queue->now;
}

/* Until the next tick a task that wakes has no chance: that time counts as if it slept on. */
POLICY_FUNCTION void lottery_wake(const run_queue_t *queue, lottery_task_t *task)
{
    uint64_t next = STATE_OF(queue, struct lottery_queue)->ticked + queue->scheduler->tick_ns;
    history_wake(&task->history, next > queue->now ? next : queue->now, lottery_window(queue));
}

/* In percent: more than 100 if the task would use less than half a CPU, fewer if more. */
POLICY_FUNCTION uint64_t lottery_adaptation(const run_history_t *history, uint64_t percent)
{
    uint64_t total = history->ran + history->away;
    return total > 0 ? 100 + percent - 2 * percent * history->ran / total : 100;
}

/* Applies the decays since the last call; each leaves 3/4. */
POLICY_FUNCTION void lottery_decay(const run_queue_t *queue, lottery_task_t *task)
{
    uint64_t interval = (uint64_t)queue->scheduler->tunable[LOTTERY_DECAY_INTERVAL];
    if (interval == 0)
        return;
    uint32_t decays = (uint32_t)(STATE_OF(queue, struct lottery_queue)->decisions / interval);
    for (uint32_t i = task->decayed_until; i < decays && task->recent > 0 && LOOP_GUARD; i++)
        task->recent -= (task->recent + 3) / 4;
    task->decayed_until = decays;
}

/* What a task holds in draws. */
POLICY_FUNCTION uint64_t lottery_tickets(const run_queue_t *queue, const lottery_task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t tickets = task->own;
    uint64_t most = (uint64_t)scheduler->tunable[LOTTERY_COMPENSATION] * COMPENSATION_ONE;
    uint64_t adaptation = (uint64_t)scheduler->tunable[LOTTERY_ADAPTATION];
    uint64_t penalty = (uint64_t)scheduler->tunable[LOTTERY_RECENT_PENALTY] * task->recent;
    if (most > COMPENSATION_ONE && !history_is_full(&task->history)) {
        uint64_t others = STATE_OF(queue, struct lottery_queue)->own - task->own;
        tickets = tickets * history_compensation(&task->history, task->own, others, most) /
                  COMPENSATION_ONE;
    }
    if (adaptation > 0)
        tickets = tickets * lottery_adaptation(&task->history, adaptation) / 100;
    if (penalty > 0)
        tickets = tickets * 100 * RECENT_ONE / (100 * RECENT_ONE + penalty);
    return tickets > 0 ? tickets : 1;
}

/*
 * As what a task counts when CPUs are compared. That is done at ticks, when those wake who
 * sleep for ticks: if they counted in full, a CPU with many of them would seem busy that has
 * nothing to do most of the time. Who competes for half of its life or more counts in full,
 * and so does who has used up a turn since it woke: it may be long until it is queued anew.
 */
POLICY_FUNCTION uint64_t lottery_usual_tickets(const run_queue_t *queue, const lottery_task_t *task)
{
    if (queue->scheduler->tunable[LOTTERY_COMPENSATION] == 1 || !task->fresh)
        return task->own;
    uint64_t usual = task->own * 2 * history_part(&task->history) / COMPENSATION_ONE;
    usual = usual < task->own ? usual : task->own;
    return usual > 0 ? usual : 1;
}

/* The task, which is about to be queued here, competes with `own` tickets. */
POLICY_FUNCTION void lottery_join(run_queue_t *queue, lottery_task_t *task, uint64_t own)
{
    STATE_OF(queue, struct lottery_queue)->own += own - task->own;
    task->own = own;
    shares_set_weight(queue, &task->member, lottery_usual_tickets(queue, task));
}

POLICY_FUNCTION void lottery_leave(run_queue_t *queue, lottery_task_t *task)
{
    STATE_OF(queue, struct lottery_queue)->own -= task->own;
    task->own = 0;
    shares_leave(queue, &task->member);
}

/* ---- who must be next, whatever the draw ---- */

/* The list that holds `task` while it is queued; null: none is needed. */
POLICY_FUNCTION task_list_t *lottery_list(run_queue_t *queue, const task_t *task)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    const scheduler_t *scheduler = queue->scheduler;
    if (scheduler->tunable[LOTTERY_TABLE_SCAN])
        return &state->waiting;
    if (scheduler->tunable[LOTTERY_NEWCOMER_LIMIT] && STATE_OF(task, struct lottery_task)->newcomer)
        return &state->newcomers;
    return scheduler->tunable[LOTTERY_WAIT_LIMIT] ? &state->waiting : NULL;
}

/* The first of the list, if it has waited for `limit` ticks (0: no limit). */
POLICY_FUNCTION task_t *lottery_overdue(const run_queue_t *queue, const task_list_t *list,
                                        uint64_t limit)
{
    task_t *first = list->first;
    uint64_t limit_ns = limit * queue->scheduler->tick_ns;
    return limit > 0 && first && queue->now - first->queued_since >= limit_ns ? first : NULL;
}

/* Of several newcomers the last must still be in time, so the first goes earlier. */
POLICY_FUNCTION task_t *lottery_urgent(run_queue_t *queue)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t slice = (uint64_t)scheduler->tunable[LOTTERY_SLICE];
    uint64_t limit = (uint64_t)scheduler->tunable[LOTTERY_NEWCOMER_LIMIT];
    uint64_t needed = state->newcomer_count * slice;
    task_t *task = NULL;
    if (limit > 0 && state->newcomers.first && needed >= limit)
        task = state->newcomers.first;
    else if (limit > 0)
        task = lottery_overdue(queue, &state->newcomers, limit - needed);
    if (!task && !scheduler->tunable[LOTTERY_TABLE_SCAN])
        task = lottery_overdue(queue, &state->waiting,
                               (uint64_t)scheduler->tunable[LOTTERY_WAIT_LIMIT]);
    return task;
}

/* ---- the draw ---- */

POLICY_FUNCTION uint64_t lottery_random(run_queue_t *queue)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    switch (queue->scheduler->tunable[LOTTERY_GENERATOR]) {
    case GENERATOR_LCG:
        return random_lcg(&state->random);
    case GENERATOR_LFSR16:
        return random_lfsr16(&state->random);
    default:
        return random_splitmix(&state->random);
    }
}

/* The holder of a ticket, where the tickets are in the order of slots: O(n). */
POLICY_FUNCTION task_t *lottery_scan(const task_list_t *list, uint64_t ticket)
{
    task_t *task = list->first;
    while (task && ticket >= TICKET_NODE(task)->tickets && LOOP_GUARD) {
        ticket -= TICKET_NODE(task)->tickets;
        task = task->next;
    }
    return task;
}

POLICY_FUNCTION task_t *lottery_draw(run_queue_t *queue)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    uint64_t total = ticket_tree_total(&state->tree);
    if (total == 0)
        return NULL;
    uint64_t ticket = lottery_random(queue) % total;
    queue->remark = ticket;
    if (queue->scheduler->tunable[LOTTERY_TABLE_SCAN])
        return lottery_scan(&state->waiting, ticket);
    return ticket_tree_holder(&state->tree, ticket);
}

POLICY_FUNCTION void lottery_take_out(run_queue_t *queue, task_t *task)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    task_list_t *list = lottery_list(queue, task);
    ticket_tree_remove(&state->tree, task);
    if (list)
        task_list_remove(list, task);
    if (list == &state->newcomers)
        state->newcomer_count--;
}

POLICY_FUNCTION task_t *lottery_pick(run_queue_t *queue, uint32_t cpu)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    (void)cpu;
    task_t *task = lottery_urgent(queue);
    if (!task)
        task = lottery_draw(queue);
    if (!task)
        return NULL;
    lottery_take_out(queue, task);

    lottery_task_t *winner = STATE_OF(task, struct lottery_task);
    winner->newcomer = false;
    winner->ticks = 0;
    if (queue->scheduler->tunable[LOTTERY_DECAY_INTERVAL]) {
        lottery_decay(queue, winner);
        winner->recent += RECENT_ONE;
        task->level = winner->recent / RECENT_ONE;
    }
    state->decisions++;
    return task;
}

/* ---- coming and going ---- */

POLICY_FUNCTION void lottery_list_insert(run_queue_t *queue, task_t *task)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    task_list_t *list = lottery_list(queue, task);
    task_t *next = NULL;
    if (!list)
        return;
    if (queue->scheduler->tunable[LOTTERY_TABLE_SCAN]) {
        next = list->first;
        while (next && next->slot < task->slot && LOOP_GUARD)
            next = next->next;
    }
    task_list_insert_before(list, task, next);
    if (list == &state->newcomers)
        state->newcomer_count++;
}

POLICY_FUNCTION void lottery_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    lottery_task_t *entrant = STATE_OF(task, struct lottery_task);
    if (reason == ENQUEUE_NEW)
        entrant->newcomer = true;
    if (reason == ENQUEUE_NEW || reason == ENQUEUE_ADOPTED || reason == ENQUEUE_WOKEN)
        lottery_wake(queue, entrant);
    if (reason == ENQUEUE_YIELDED)
        lottery_cut_short(queue, task);
    if (reason == ENQUEUE_WOKEN || reason == ENQUEUE_EXPIRED)
        entrant->fresh = reason == ENQUEUE_WOKEN;
    lottery_decay(queue, entrant);

    lottery_join(queue, entrant, lottery_own_tickets(queue->scheduler, task));
    ticket_tree_insert(&state->tree, task, lottery_tickets(queue, entrant));
    lottery_list_insert(queue, task);
}

POLICY_FUNCTION void lottery_dequeue(run_queue_t *queue, task_t *task)
{
    lottery_take_out(queue, task);
    lottery_leave(queue, STATE_OF(task, struct lottery_task));
}

POLICY_FUNCTION void lottery_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    lottery_task_t *state = STATE_OF(task, struct lottery_task);
    history_stop(&state->history, queue->now, queue->now - task->picked_since,
                 lottery_window(queue));
    if (reason == STOP_BLOCKED)
        lottery_cut_short(queue, task);
    if (reason != STOP_RUNNABLE)
        lottery_leave(queue, state);
}

POLICY_FUNCTION enum tick_verdict lottery_tick(run_queue_t *queue, task_t *task)
{
    lottery_task_t *state = STATE_OF(task, struct lottery_task);
    shares_tick(queue);
    STATE_OF(queue, struct lottery_queue)->ticked = queue->now;
    state->ticks++;
    return state->ticks >= queue->scheduler->tunable[LOTTERY_SLICE] ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t lottery_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[LOTTERY_SLICE];
}

/* ---- several CPUs ---- */

POLICY_FUNCTION uint32_t lottery_place(const scheduler_t *scheduler, const task_t *task,
                                       enum enqueue_reason reason)
{
    if (scheduler->tunable[LOTTERY_BALANCE] == BALANCE_NONE && reason == ENQUEUE_WOKEN)
        return task->cpu;
    bool by_tickets = scheduler->tunable[LOTTERY_PLACEMENT] == PLACE_FEWEST_TICKETS;
    return by_tickets ? shares_place(scheduler, task, reason) : place_fewest(scheduler, task);
}

POLICY_FUNCTION uint32_t lottery_push(const scheduler_t *scheduler, uint32_t cpu)
{
    bool moves = scheduler->tunable[LOTTERY_BALANCE] != BALANCE_NONE;
    return moves ? push_to_idle(scheduler, cpu) : NO_CPU;
}

/* The CPU with the most tickets among those where tasks wait; NO_CPU: none has more. */
POLICY_FUNCTION uint32_t lottery_most_tickets(const scheduler_t *scheduler, uint32_t cpu)
{
    uint64_t most = SHARES(scheduler->queue[cpu])->weight;
    uint32_t found = NO_CPU;
    for (uint32_t other = LOOP_START(0); other < scheduler->queues && LOOP_GUARD; other++) {
        uint64_t tickets = SHARES(scheduler->queue[other])->weight;
        if (scheduler->queue[other]->queued > 0 && tickets > most) {
            found = other;
            most = tickets;
        }
    }
    return found;
}

POLICY_FUNCTION uint32_t lottery_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    uint64_t interval = (uint64_t)scheduler->tunable[LOTTERY_BALANCE_INTERVAL];
    if (scheduler->tunable[LOTTERY_BALANCE] == BALANCE_NONE)
        return NO_CPU;
    if (idle)
        return balance_longest(scheduler, cpu, idle);
    if (scheduler->tunable[LOTTERY_BALANCE] == BALANCE_SHARES)
        return shares_next_cpu(scheduler, cpu);
    bool due = SHARES(scheduler->queue[cpu])->ticks % interval == 0;
    return due ? lottery_most_tickets(scheduler, cpu) : NO_CPU;
}

/* Is it good for `cpu` to have `task`, which is queued here? */
POLICY_FUNCTION bool lottery_should_move(run_queue_t *queue, const task_t *task, uint32_t cpu)
{
    const scheduler_t *scheduler = queue->scheduler;
    const run_queue_t *other = scheduler->queue[cpu];
    if (queue_load(other) == 0)
        return true;
    if (scheduler->tunable[LOTTERY_BALANCE] == BALANCE_SHARES)
        return shares_move_pays(queue, &STATE_OF(task, struct lottery_task)->member, cpu,
                                scheduler->tunable[LOTTERY_HORIZON]);
    return SHARES(other)->weight + TICKET_NODE(task)->tickets < SHARES(queue)->weight;
}

/* Any task, whatever its tickets, if its move is good. */
POLICY_FUNCTION task_t *lottery_steal(run_queue_t *queue, uint32_t cpu)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    if (state->tree.count == 0)
        return NULL;
    uint64_t position = 1 + random_splitmix(&state->random) % state->tree.count;
    task_t *task = ticket_tree_at(&state->tree, position);
    if (!lottery_should_move(queue, task, cpu))
        return NULL;
    lottery_dequeue(queue, task);
    return task;
}

POLICY_FUNCTION void lottery_queue_init(run_queue_t *queue)
{
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    uint64_t seed = queue->scheduler->seed + ((uint64_t)queue->cpu << 32);
    state->random = seed;
    state->random = random_splitmix(&state->random); /* seeds that are alike give unlike draws */
}

POLICY_FUNCTION bool lottery_shared_queue(const scheduler_t *scheduler)
{
    return scheduler->tunable[LOTTERY_TABLE_SCAN] != 0;
}

POLICY_FUNCTION enum share_attribute lottery_shares_by(const scheduler_t *scheduler)
{
    if (scheduler->tunable[LOTTERY_FIXED_TICKETS])
        return SHARES_EQUAL;
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
    .tunables = lottery_tunables,
    .tunable_count = sizeof(lottery_tunables) / sizeof(lottery_tunables[0]),
    .presets = lottery_presets,
    .preset_count = sizeof(lottery_presets) / sizeof(lottery_presets[0]),
    .task_bytes = sizeof(struct lottery_task),
    .enqueue = lottery_enqueue,
    .dequeue = lottery_dequeue,
    .pick = lottery_pick,
    .tick = lottery_tick,
    .time_slice = lottery_time_slice,
    .queue_init = lottery_queue_init,
    .stopped = lottery_stopped,
    .place = lottery_place,
    .push = lottery_push,
    .balance = lottery_balance,
    .steal = lottery_steal,
    .shared_queue = lottery_shared_queue,
    .shares_by = lottery_shares_by,
    .tickets = lottery_given,
    .ticket_parts = lottery_unit,
};
