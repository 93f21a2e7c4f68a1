/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Lottery: who runs next is drawn by lot; a task's chance is its part of the tickets.
 *
 * As shipped: a tree of tickets for each CPU (ticket_tree.h) makes a draw O(log n).
 * Draws are independent of each other: on one CPU each task's share is its part of
 * the tickets, as far as chance allows. A task that blocks holds more tickets
 * while it competes, so that it gets its part in spite of the time that it is away
 * (Waldspurger's compensation tickets).
 *
 * The presets are the lotteries of three studies.
 */

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
    LOTTERY_COMPENSATION,
    LOTTERY_ADAPTATION,
    LOTTERY_DECAY_INTERVAL,
    LOTTERY_RECENT_PENALTY,
    LOTTERY_WAIT_LIMIT,
    LOTTERY_NEWCOMER_LIMIT,
};

enum { GENERATOR_SPLITMIX, GENERATOR_LCG, GENERATOR_LFSR16 };
enum { PLACE_FEWEST_TASKS, PLACE_FEWEST_TICKETS };
enum { BALANCE_NONE, BALANCE_PERIODIC };

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
    [LOTTERY_BALANCE] = {"balance", "0: tasks stay on their CPU, 1: ticket sums are evened", 0, 1,
                         1},
    [LOTTERY_BALANCE_INTERVAL] = {"balance_interval", "ticks from one evening to the next", 1, 100,
                                  100000},
    [LOTTERY_COMPENSATION] = {"compensation",
                              "times its tickets that a task that blocks counts at most; 1: off", 1,
                              16, 64},
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

/* Of the recent past: a task forgets half of it whenever it is longer than the window. */
struct lottery_history {
    uint64_t blocked;   /* ns */
    uint64_t competing; /* ns, queued or running */
    uint64_t ran;       /* ns */
    uint64_t entitled;  /* ns that it would have run, had it not blocked before a turn's end */
    uint64_t since;     /* when it was blocked or began to compete */
};

struct lottery_task {
    struct ticket_node node; /* its tickets times lottery_unit() */
    struct lottery_history history;
    uint64_t recent;        /* selections, decayed, times RECENT_UNIT */
    uint64_t decayed_until; /* the number of decays that `recent` has seen */
    uint32_t ticks;         /* of the slice, used */
    bool newcomer;          /* was never picked */
};

struct lottery_queue {
    struct ticket_tree tree;
    struct task_list waiting;   /* in the order of enqueueing; by slots with a table scan */
    struct task_list newcomers; /* likewise, those that were never picked, if there is a limit */
    uint64_t newcomer_count;
    uint64_t tickets; /* of all that are queued or run here */
    uint64_t random;
    uint64_t decisions;
    uint64_t ticks;
};

_Static_assert(sizeof(struct lottery_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct lottery_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct lottery_task SHARED_MEMORY lottery_task_t;
typedef struct lottery_queue SHARED_MEMORY lottery_queue_t;
typedef struct lottery_history SHARED_MEMORY lottery_history_t;

/* ---- a task's tickets ---- */

#define HISTORY_TICKS 64  /* of blocking and competing, in which a task is known */
#define SCALE         16  /* parts of a ticket, where tickets are multiplied */
#define RECENT_UNIT   256 /* parts of a selection, so that few of them decay too */

/* Divides a ticket only if something multiplies tickets: narrow generators reach more then. */
POLICY_FUNCTION uint64_t lottery_unit(const scheduler_t *scheduler)
{
    bool multiplies = scheduler->tunable[LOTTERY_COMPENSATION] > 1 ||
                      scheduler->tunable[LOTTERY_ADAPTATION] > 0 ||
                      scheduler->tunable[LOTTERY_RECENT_PENALTY] > 0;
    return multiplies ? SCALE : 1;
}

POLICY_FUNCTION void lottery_forget(lottery_history_t *history, uint64_t window)
{
    if (history->blocked > window)
        history->blocked = window;
    while (history->blocked + history->competing > window && LOOP_GUARD) {
        history->blocked /= 2;
        history->competing /= 2;
        history->ran /= 2;
        history->entitled /= 2;
    }
}

/* The task's latest turn ended before its time: it was entitled to the rest. */
POLICY_FUNCTION void lottery_cut_short(run_queue_t *queue, task_t *task)
{
    uint64_t slice = (uint64_t)queue->scheduler->tunable[LOTTERY_SLICE] * queue->scheduler->tick_ns;
    uint64_t ran = queue->now - task->picked_since;
    if (ran < slice)
        STATE_OF(task, struct lottery_task)->history.entitled += slice - ran;
}

/* The times a task's tickets are to count, in parts of SCALE: by how much longer it lives than
 * it competes, and by how much longer its turns might be than they are. */
POLICY_FUNCTION uint64_t lottery_compensation(const lottery_history_t *history, uint64_t most)
{
    uint64_t times = SCALE;
    if (history->competing > 0)
        times = SCALE * (history->blocked + history->competing) / history->competing;
    times = times < most ? times : most;
    if (history->ran > 0)
        times = times * history->entitled / history->ran;
    return times < most ? times : most;
}

/* In percent: more than 100 if the task would use less than half a CPU, fewer if more. */
POLICY_FUNCTION uint64_t lottery_adaptation(const lottery_history_t *history, uint64_t percent)
{
    uint64_t total = history->ran + history->blocked;
    return total > 0 ? 100 + percent - 2 * percent * history->ran / total : 100;
}

/* Applies the decays since the last call; each leaves 3/4. */
POLICY_FUNCTION void lottery_decay(run_queue_t *queue, lottery_task_t *task)
{
    uint64_t interval = (uint64_t)queue->scheduler->tunable[LOTTERY_DECAY_INTERVAL];
    if (interval == 0)
        return;
    uint64_t decays = STATE_OF(queue, struct lottery_queue)->decisions / interval;
    for (uint64_t i = task->decayed_until; i < decays && task->recent > 0 && LOOP_GUARD; i++)
        task->recent = task->recent * 3 / 4;
    task->decayed_until = decays;
}

/* What `task` holds in a draw, in units. */
POLICY_FUNCTION uint64_t lottery_tickets(run_queue_t *queue, task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    lottery_task_t *state = STATE_OF(task, struct lottery_task);
    uint64_t tickets = task->tickets;
    if (scheduler->tunable[LOTTERY_WEIGHT_TICKETS])
        tickets = task->weight;
    if (scheduler->tunable[LOTTERY_FIXED_TICKETS])
        tickets = (uint64_t)scheduler->tunable[LOTTERY_FIXED_TICKETS];
    if (lottery_unit(scheduler) == 1)
        return tickets;

    tickets *= lottery_compensation(&state->history,
                                    SCALE * (uint64_t)scheduler->tunable[LOTTERY_COMPENSATION]);
    if (scheduler->tunable[LOTTERY_ADAPTATION])
        tickets =
            tickets *
            lottery_adaptation(&state->history, (uint64_t)scheduler->tunable[LOTTERY_ADAPTATION]) /
            100;
    if (scheduler->tunable[LOTTERY_RECENT_PENALTY])
        tickets = tickets * 100 * RECENT_UNIT /
                  (100 * RECENT_UNIT +
                   state->recent * (uint64_t)scheduler->tunable[LOTTERY_RECENT_PENALTY]);
    return tickets > 0 ? tickets : 1;
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
        winner->recent += RECENT_UNIT;
        task->level = winner->recent / RECENT_UNIT;
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
    lottery_history_t *history = &entrant->history;
    if (reason == ENQUEUE_NEW)
        entrant->newcomer = true;
    if (reason == ENQUEUE_YIELDED)
        lottery_cut_short(queue, task);
    if (reason == ENQUEUE_WOKEN) {
        history->blocked += queue->now - history->since;
        lottery_forget(history, HISTORY_TICKS * queue->scheduler->tick_ns);
    }
    if (reason != ENQUEUE_MOVED)
        history->since = queue->now;
    lottery_decay(queue, entrant);

    uint64_t tickets = lottery_tickets(queue, task);
    ticket_tree_insert(&state->tree, task, tickets);
    state->tickets += tickets;
    lottery_list_insert(queue, task);
}

POLICY_FUNCTION void lottery_dequeue(run_queue_t *queue, task_t *task)
{
    lottery_take_out(queue, task);
    STATE_OF(queue, struct lottery_queue)->tickets -= TICKET_NODE(task)->tickets;
}

POLICY_FUNCTION void lottery_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    lottery_history_t *history = &STATE_OF(task, struct lottery_task)->history;
    uint64_t ran = queue->now - task->picked_since;
    history->competing += queue->now - history->since;
    history->ran += ran;
    history->entitled += ran;
    history->since = queue->now;
    if (reason == STOP_BLOCKED)
        lottery_cut_short(queue, task);
    lottery_forget(history, HISTORY_TICKS * queue->scheduler->tick_ns);
    STATE_OF(queue, struct lottery_queue)->tickets -= TICKET_NODE(task)->tickets;
}

POLICY_FUNCTION enum tick_verdict lottery_tick(run_queue_t *queue, task_t *task)
{
    lottery_task_t *state = STATE_OF(task, struct lottery_task);
    STATE_OF(queue, struct lottery_queue)->ticks++;
    state->ticks++;
    return state->ticks >= queue->scheduler->tunable[LOTTERY_SLICE] ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t lottery_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[LOTTERY_SLICE];
}

/* ---- several CPUs ---- */

POLICY_FUNCTION uint64_t lottery_load(const scheduler_t *scheduler, uint32_t cpu)
{
    return STATE_OF(scheduler->queue[cpu], struct lottery_queue)->tickets;
}

/* The CPU with the fewest tickets; the task's own where it is one of them, else the lowest. */
POLICY_FUNCTION uint32_t lottery_place(const scheduler_t *scheduler, const task_t *task,
                                       enum enqueue_reason reason)
{
    uint32_t best = task->cpu < scheduler->queues ? task->cpu : 0;
    if (scheduler->tunable[LOTTERY_BALANCE] == BALANCE_NONE && reason == ENQUEUE_WOKEN)
        return best;
    if (scheduler->tunable[LOTTERY_PLACEMENT] == PLACE_FEWEST_TASKS)
        return place_fewest(scheduler, task);
    uint64_t fewest = lottery_load(scheduler, best);
    for (uint32_t cpu = 0; cpu < scheduler->queues && LOOP_GUARD; cpu++) {
        uint64_t tickets = lottery_load(scheduler, cpu);
        if (tickets < fewest) {
            best = cpu;
            fewest = tickets;
        }
    }
    return best;
}

POLICY_FUNCTION uint32_t lottery_push(const scheduler_t *scheduler, uint32_t cpu)
{
    return scheduler->tunable[LOTTERY_BALANCE] == BALANCE_NONE ? NO_CPU
                                                               : push_to_idle(scheduler, cpu);
}

/* The CPU with the most tickets among those where tasks wait; NO_CPU: none has more. */
POLICY_FUNCTION uint32_t lottery_most_tickets(const scheduler_t *scheduler, uint32_t cpu)
{
    uint64_t most = lottery_load(scheduler, cpu);
    uint32_t found = NO_CPU;
    for (uint32_t other = 0; other < scheduler->queues && LOOP_GUARD; other++) {
        uint64_t tickets = lottery_load(scheduler, other);
        if (scheduler->queue[other]->queued > 0 && tickets > most) {
            found = other;
            most = tickets;
        }
    }
    return found;
}

POLICY_FUNCTION uint32_t lottery_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    const lottery_queue_t *state = STATE_OF(scheduler->queue[cpu], struct lottery_queue);
    uint64_t interval = (uint64_t)scheduler->tunable[LOTTERY_BALANCE_INTERVAL];
    if (scheduler->tunable[LOTTERY_BALANCE] == BALANCE_NONE)
        return NO_CPU;
    if (idle)
        return balance_longest(scheduler, cpu, idle);
    return state->ticks % interval == 0 ? lottery_most_tickets(scheduler, cpu) : NO_CPU;
}

/* One that is drawn; it goes if `cpu` is idle or if that makes the sums of tickets more even. */
POLICY_FUNCTION task_t *lottery_steal(run_queue_t *queue, uint32_t cpu)
{
    const scheduler_t *scheduler = queue->scheduler;
    lottery_queue_t *state = STATE_OF(queue, struct lottery_queue);
    task_t *task = lottery_draw(queue);
    uint64_t other = lottery_load(scheduler, cpu);
    bool evens = task && other + TICKET_NODE(task)->tickets < state->tickets;
    if (!evens && queue_load(scheduler->queue[cpu]) > 0)
        return NULL;
    if (task)
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
    .tunables = lottery_tunables,
    .tunable_count = sizeof(lottery_tunables) / sizeof(lottery_tunables[0]),
    .presets = lottery_presets,
    .preset_count = sizeof(lottery_presets) / sizeof(lottery_presets[0]),
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
};
