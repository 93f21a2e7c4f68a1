/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * The lotteries of two studies: policies/lottery.c plus their rules and proposals, each as a
 * tunable.
 *
 * Preset `thesis` (study 1): its loop (section 3.2) shuffles the array before drawing, which
 * changes no chances. It counts recent selections, which do not enter the draw. Its generator is
 * the xorshift of its program; tunable `generator` has the linear congruential one of its text, and
 * the proposed Mersenne Twister. The proposals of section 8.2 are tunables: other generators,
 * balanced sums of tickets, tickets by behaviour, limits of waiting. Preset `proposed` enables all
 * of them; its faster decay has no effect, because the draw does not read the count.
 *
 * Preset `equal-lfsr` (study 3): equal tickets, drawn by a scan of the process table with a narrow
 * generator.
 */

#include "policies/drawing.h"
#include "policies/placement.h"
#include "policies/policy.h"
#include "policies/studies/old_generators.h"
#include "policies/task_list.h"

enum {
    STUDY_GENERATOR = DRAWING_TUNABLE_COUNT,
    STUDY_FIXED_TICKETS,
    STUDY_TABLE_SCAN,
    STUDY_PLACEMENT,
    STUDY_BALANCE,
    STUDY_BALANCE_INTERVAL,
    STUDY_ADAPTATION,
    STUDY_DECAY_INTERVAL,
    STUDY_RECENT_PENALTY,
    STUDY_WAIT_LIMIT,
    STUDY_NEWCOMER_LIMIT,
};

enum {
    GENERATOR_SPLITMIX,
    GENERATOR_XORSHIFT,
    GENERATOR_LFSR16,
    GENERATOR_LCG32,
    GENERATOR_TWISTER,
};
enum { PLACE_FEWEST_TASKS, PLACE_FEWEST_TICKETS };
enum { BALANCE_NONE, BALANCE_PERIODIC, BALANCE_SHARES };

static const struct tunable study_lottery_tunables[] = {
    DRAWING_TUNABLES,
    [STUDY_GENERATOR] = {"generator",
                         "0 splitmix64, 1 xorshift, 2 lfsr16, 3 linear congruential, "
                         "4 Mersenne Twister",
                         0, 0, 4},
    [STUDY_FIXED_TICKETS] = {"fixed_tickets", "tickets that every task holds; 0: its own", 0, 0,
                             TICKETS_MAX},
    [STUDY_TABLE_SCAN] = {"table_scan", "1: one queue for all CPUs, tickets in order of slots", 0,
                          0, 1},
    [STUDY_PLACEMENT] = {"placement",
                         "a new task goes where the fewest 0: tasks are, 1: tickets wait", 0, 1, 1},
    [STUDY_BALANCE] = {"balance", "0: tasks stay on their CPU, 1: sums are evened, 2: fair shares",
                       0, 2, 2},
    [STUDY_BALANCE_INTERVAL] = {"balance_interval", "ticks from one evening of sums to the next", 1,
                                100, 100000},
    [STUDY_ADAPTATION] = {"adaptation",
                          "percent more tickets if I/O-bound, fewer if CPU-bound; 0: off", 0, 0,
                          99},
    [STUDY_DECAY_INTERVAL] = {"decay_interval",
                              "decisions until recent selections count 3/4; 0: not counted", 0, 0,
                              100000},
    [STUDY_RECENT_PENALTY] = {"recent_penalty",
                              "percent that a recent selection divides tickets by; 0: none", 0, 0,
                              1000},
    [STUDY_WAIT_LIMIT] = {"wait_limit", "ticks of waiting after which a task is next; 0: none", 0,
                          0, 1000000},
    [STUDY_NEWCOMER_LIMIT] = {"newcomer_limit",
                              "ticks within which a new task has its first turn; 0: none", 0, 0,
                              1000000},
};

static const struct preset study_lottery_presets[] = {
    {"thesis",
     "study 1: per CPU, placed by waiting tickets, never moved; xorshift; recent selections are "
     "only counted",
     {{"generator", GENERATOR_XORSHIFT},
      {"balance", BALANCE_NONE},
      {"compensation", 1},
      {"decay_interval", 100}}},
    {"proposed",
     "study 1's proposals in section 8.2: sums balanced every 100 ticks, tickets by behaviour, "
     "limits of waiting, a Mersenne Twister",
     {{"generator", GENERATOR_TWISTER},
      {"balance", BALANCE_PERIODIC},
      {"compensation", 1},
      {"adaptation", 50},
      {"decay_interval", 50},
      {"wait_limit", 200},
      {"newcomer_limit", 10}}},
    {"equal-lfsr",
     "study 3: 100 tickets each, drawn with a 16-bit LFSR from one process table",
     {{"generator", GENERATOR_LFSR16},
      {"fixed_tickets", 100},
      {"table_scan", 1},
      {"compensation", 1}}},
};

struct study_lottery_task {
    struct drawing_task drawing;
    uint32_t recent;        /* selections, decayed, in units of 1/RECENT_ONE */
    uint32_t decayed_until; /* the number of decays already applied to `recent` */
};

struct study_lottery_queue {
    struct drawing_queue drawing;
    struct twister twister;
    struct task_list waiting;   /* in the order of enqueueing; by slots with a table scan */
    struct task_list newcomers; /* tasks never picked, in the same order, if there is a limit */
    uint64_t newcomer_count;
    uint64_t decisions;
    uint64_t tickets_waiting; /* of queued tasks; read without the lock */
};

_Static_assert(sizeof(struct study_lottery_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct study_lottery_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct study_lottery_task SHARED_MEMORY study_lottery_task_t;
typedef struct study_lottery_queue SHARED_MEMORY study_lottery_queue_t;

/* ---- a task's tickets ---- */

#define RECENT_ONE 256 /* of one selection: fine enough that a single selection decays, too */

/* Returns the units of a ticket: several only if something multiplies tickets, because narrow
 * generators then reach more tickets. */
POLICY_FUNCTION uint64_t study_lottery_unit(const scheduler_t *scheduler)
{
    bool multiplies = scheduler->tunable[DRAWING_COMPENSATION] > 1 ||
                      scheduler->tunable[STUDY_ADAPTATION] > 0 ||
                      scheduler->tunable[STUDY_RECENT_PENALTY] > 0;
    return multiplies ? SCALE : 1;
}

/* Returns the tickets that users gave to `task`. */
POLICY_FUNCTION uint64_t study_lottery_given(const scheduler_t *scheduler, const task_t *task)
{
    if (scheduler->tunable[STUDY_FIXED_TICKETS])
        return (uint64_t)scheduler->tunable[STUDY_FIXED_TICKETS];
    return task->tickets;
}

/* Returns the same, in units. */
POLICY_FUNCTION uint64_t study_lottery_base_tickets(const scheduler_t *scheduler,
                                                    const task_t *task)
{
    return study_lottery_given(scheduler, task) * study_lottery_unit(scheduler);
}

/* Returns a percentage: above 100 if the task would use less than half a CPU, below if more. */
POLICY_FUNCTION uint64_t study_lottery_adaptation(const run_history_t *history, uint64_t percent)
{
    uint64_t total = history->ran + history->away;
    return total > 0 ? 100 + percent - 2 * percent * history->ran / total : 100;
}

/* Applies the decays since the last call; each leaves 3/4. */
POLICY_FUNCTION void study_lottery_decay(const run_queue_t *queue, study_lottery_task_t *task)
{
    uint64_t interval = (uint64_t)queue->scheduler->tunable[STUDY_DECAY_INTERVAL];
    if (interval == 0)
        return;
    uint32_t decays = (uint32_t)(STATE_OF(queue, struct study_lottery_queue)->decisions / interval);
    for (uint32_t i = task->decayed_until; i < decays && task->recent > 0 && LOOP_GUARD; i++)
        task->recent -= (task->recent + 3) / 4;
    task->decayed_until = decays;
}

/* Returns a task's tickets in draws. */
POLICY_FUNCTION uint64_t study_lottery_tickets(const run_queue_t *queue,
                                               const study_lottery_task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t tickets = drawing_compensated(queue, &task->drawing);
    uint64_t adaptation = (uint64_t)scheduler->tunable[STUDY_ADAPTATION];
    uint64_t penalty = (uint64_t)scheduler->tunable[STUDY_RECENT_PENALTY] * task->recent;
    if (adaptation > 0)
        tickets = tickets * study_lottery_adaptation(&task->drawing.history, adaptation) / 100;
    if (penalty > 0)
        tickets = tickets * 100 * RECENT_ONE / (100 * RECENT_ONE + penalty);
    return tickets > 0 ? tickets : 1;
}

/* ---- tasks that must be next, regardless of the draw ---- */

/* Returns the list that holds `task` while it is queued, or null if none is needed. */
POLICY_FUNCTION task_list_t *study_lottery_list(run_queue_t *queue, const task_t *task)
{
    study_lottery_queue_t *state = STATE_OF(queue, struct study_lottery_queue);
    const scheduler_t *scheduler = queue->scheduler;
    if (scheduler->tunable[STUDY_TABLE_SCAN])
        return &state->waiting;
    if (scheduler->tunable[STUDY_NEWCOMER_LIMIT] && drawing_task_of(task)->newcomer)
        return &state->newcomers;
    return scheduler->tunable[STUDY_WAIT_LIMIT] ? &state->waiting : NULL;
}

/* Returns the first task of the list if it has waited for `limit` ticks (0: no limit). */
POLICY_FUNCTION task_t *study_lottery_overdue(const run_queue_t *queue, const task_list_t *list,
                                              uint64_t limit)
{
    task_t *first = list->first;
    uint64_t limit_ns = limit * queue->scheduler->tick_ns;
    return limit > 0 && first && queue->now - first->queued_since >= limit_ns ? first : NULL;
}

/* Returns the overdue task to run now, or null. Of several new tasks the last must still be in
 * time, so the first runs earlier. */
POLICY_FUNCTION task_t *study_lottery_urgent(run_queue_t *queue)
{
    study_lottery_queue_t *state = STATE_OF(queue, struct study_lottery_queue);
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t slice = (uint64_t)scheduler->tunable[DRAWING_SLICE];
    uint64_t limit = (uint64_t)scheduler->tunable[STUDY_NEWCOMER_LIMIT];
    uint64_t needed = state->newcomer_count * slice;
    task_t *task = NULL;
    if (limit > 0 && state->newcomers.first && needed >= limit)
        task = state->newcomers.first;
    else if (limit > 0)
        task = study_lottery_overdue(queue, &state->newcomers, limit - needed);
    if (!task && !scheduler->tunable[STUDY_TABLE_SCAN])
        task = study_lottery_overdue(queue, &state->waiting,
                                     (uint64_t)scheduler->tunable[STUDY_WAIT_LIMIT]);
    return task;
}

/* ---- the draw ---- */

/* A hook. */
POLICY_FUNCTION void study_lottery_queue_init(run_queue_t *queue)
{
    drawing_queue_init(queue);
    random_twister_start(&STATE_OF(queue, struct study_lottery_queue)->twister,
                         (uint32_t)drawing_queue_of(queue)->random);
}

/* Draws a ticket below `total`. */
POLICY_FUNCTION uint64_t study_lottery_random(run_queue_t *queue, uint64_t total)
{
    random_state_t *state = &drawing_queue_of(queue)->random;
    switch (queue->scheduler->tunable[STUDY_GENERATOR]) {
    case GENERATOR_XORSHIFT:
        return random_xorshift31_below(state, total);
    case GENERATOR_LFSR16:
        return random_lfsr16_below(state, total);
    case GENERATOR_LCG32:
        return random_lcg32_below(state, total);
    case GENERATOR_TWISTER:
        return random_twister_below(&STATE_OF(queue, struct study_lottery_queue)->twister, total);
    default:
        return random_splitmix(state) % total;
    }
}

/* Returns the holder of a ticket among the tasks that may run on `cpu`. Tickets are in the order
 * of slots: O(n). */
POLICY_FUNCTION task_t *study_lottery_scan(const task_list_t *list, uint64_t ticket, uint32_t cpu)
{
    task_t *task = list->first;
    while (task && LOOP_GUARD) {
        bool may_run = task_may_run_on(task, cpu);
        if (may_run && ticket < TICKET_NODE(task)->tickets)
            break;
        ticket -= may_run ? TICKET_NODE(task)->tickets : 0;
        task = task->next;
    }
    return task;
}

POLICY_FUNCTION task_t *study_lottery_draw(run_queue_t *queue, uint32_t cpu)
{
    study_lottery_queue_t *state = STATE_OF(queue, struct study_lottery_queue);
    ticket_tree_t *tree = &state->drawing.tree;
    uint64_t total =
        queue_bars(queue, cpu) ? ticket_tree_total_on(tree, cpu) : ticket_tree_total(tree);
    if (total == 0)
        return NULL;
    uint64_t ticket = study_lottery_random(queue, total);
    queue->remark = ticket;
    if (queue->scheduler->tunable[STUDY_TABLE_SCAN])
        return study_lottery_scan(&state->waiting, ticket, cpu);
    return ticket_tree_holder(&state->drawing.tree, ticket);
}

POLICY_FUNCTION void study_lottery_take_out(run_queue_t *queue, task_t *task)
{
    study_lottery_queue_t *state = STATE_OF(queue, struct study_lottery_queue);
    task_list_t *list = study_lottery_list(queue, task);
    ticket_tree_remove(&state->drawing.tree, task);
    state->tickets_waiting = ticket_tree_total(&state->drawing.tree);
    if (list)
        task_list_remove(list, task);
    if (list == &state->newcomers)
        state->newcomer_count--;
}

POLICY_FUNCTION task_t *study_lottery_pick(run_queue_t *queue, uint32_t cpu)
{
    study_lottery_queue_t *state = STATE_OF(queue, struct study_lottery_queue);
    task_t *task = study_lottery_urgent(queue);
    if (!task)
        task = study_lottery_draw(queue, cpu);
    if (!task)
        return NULL;
    study_lottery_take_out(queue, task);

    study_lottery_task_t *winner = STATE_OF(task, struct study_lottery_task);
    winner->drawing.newcomer = false;
    winner->drawing.ticks = 0;
    if (queue->scheduler->tunable[STUDY_DECAY_INTERVAL]) {
        study_lottery_decay(queue, winner);
        winner->recent += RECENT_ONE;
        task->level = winner->recent / RECENT_ONE;
    }
    state->decisions++;
    return task;
}

/* ---- arrival and departure ---- */

POLICY_FUNCTION void study_lottery_list_insert(run_queue_t *queue, task_t *task)
{
    study_lottery_queue_t *state = STATE_OF(queue, struct study_lottery_queue);
    task_list_t *list = study_lottery_list(queue, task);
    task_t *next = NULL;
    if (!list)
        return;
    if (queue->scheduler->tunable[STUDY_TABLE_SCAN]) {
        next = list->first;
        while (next && next->slot < task->slot && LOOP_GUARD)
            next = next->next;
    }
    task_list_insert_before(list, task, next);
    if (list == &state->newcomers)
        state->newcomer_count++;
}

POLICY_FUNCTION void study_lottery_enqueue(run_queue_t *queue, task_t *task,
                                           enum enqueue_reason reason)
{
    study_lottery_queue_t *state = STATE_OF(queue, struct study_lottery_queue);
    study_lottery_task_t *entrant = STATE_OF(task, struct study_lottery_task);
    if (reason == ENQUEUE_NEW)
        entrant->drawing.newcomer = true;
    study_lottery_decay(queue, entrant);
    drawing_join(queue, task, reason, study_lottery_base_tickets(queue->scheduler, task));
    ticket_tree_insert(&state->drawing.tree, task, study_lottery_tickets(queue, entrant));
    state->tickets_waiting = ticket_tree_total(&state->drawing.tree);
    study_lottery_list_insert(queue, task);
}

POLICY_FUNCTION void study_lottery_dequeue(run_queue_t *queue, task_t *task)
{
    study_lottery_take_out(queue, task);
    drawing_leave(queue, task);
}

/* ---- several CPUs ---- */

/* Returns the CPU with the fewest waiting tickets, the lowest of several. A running task has
 * left its queue and does not count. */
POLICY_FUNCTION uint32_t study_lottery_fewest_waiting(const scheduler_t *scheduler,
                                                      const task_t *task)
{
    uint32_t best = 0;
    uint64_t fewest = UINT64_MAX;
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->queues && LOOP_GUARD; cpu++) {
        const study_lottery_queue_t *state =
            STATE_OF(scheduler->queue[cpu], struct study_lottery_queue);
        uint64_t tickets = state->tickets_waiting;
        if (tickets < fewest && task_may_run_on(task, cpu)) {
            best = cpu;
            fewest = tickets;
        }
    }
    return best;
}

POLICY_FUNCTION uint32_t study_lottery_place(const scheduler_t *scheduler, const task_t *task,
                                             enum enqueue_reason reason)
{
    if (scheduler->tunable[STUDY_BALANCE] == BALANCE_NONE && reason == ENQUEUE_WOKEN)
        return home_cpu_of(scheduler, task);
    if (scheduler->tunable[STUDY_PLACEMENT] == PLACE_FEWEST_TASKS)
        return place_fewest(scheduler, task);
    return reason == ENQUEUE_NEW ? study_lottery_fewest_waiting(scheduler, task)
                                 : shares_place(scheduler, task, reason);
}

POLICY_FUNCTION uint32_t study_lottery_push(const scheduler_t *scheduler, uint32_t cpu)
{
    bool moves = scheduler->tunable[STUDY_BALANCE] != BALANCE_NONE;
    return moves ? push_to_idle(scheduler, cpu) : NO_CPU;
}

/* Returns the CPU with the most tickets among the CPUs with waiting tasks, or NO_CPU if none has
 * more. */
POLICY_FUNCTION uint32_t study_lottery_most_tickets(const scheduler_t *scheduler, uint32_t cpu)
{
    uint64_t most = SHARES(scheduler->queue[cpu])->weight;
    uint32_t best = NO_CPU;
    for (uint32_t other = LOOP_START(0); other < scheduler->queues && LOOP_GUARD; other++) {
        uint64_t tickets = SHARES(scheduler->queue[other])->weight;
        if (scheduler->queue[other]->queued > 0 && tickets > most) {
            best = other;
            most = tickets;
        }
    }
    return best;
}

POLICY_FUNCTION uint32_t study_lottery_balance(const scheduler_t *scheduler, uint32_t cpu,
                                               bool idle)
{
    uint64_t interval = (uint64_t)scheduler->tunable[STUDY_BALANCE_INTERVAL];
    if (scheduler->tunable[STUDY_BALANCE] == BALANCE_NONE)
        return NO_CPU;
    if (idle)
        return balance_longest(scheduler, cpu, idle);
    if (scheduler->tunable[STUDY_BALANCE] == BALANCE_SHARES)
        return shares_next_cpu(scheduler, cpu);
    bool due = SHARES(scheduler->queue[cpu])->ticks % interval == 0;
    return due ? study_lottery_most_tickets(scheduler, cpu) : NO_CPU;
}

/* Returns true if moving `task`, which is queued here, to `cpu` helps. */
POLICY_FUNCTION bool study_lottery_should_move(run_queue_t *queue, const task_t *task, uint32_t cpu)
{
    const scheduler_t *scheduler = queue->scheduler;
    const run_queue_t *other = scheduler->queue[cpu];
    if (queue_load(other) == 0)
        return true;
    if (scheduler->tunable[STUDY_BALANCE] == BALANCE_SHARES)
        return drawing_move_pays(queue, task, cpu);
    return SHARES(other)->weight + TICKET_NODE(task)->tickets < SHARES(queue)->weight;
}

POLICY_FUNCTION task_t *study_lottery_steal(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = drawing_any(queue, cpu);
    if (!task || !study_lottery_should_move(queue, task, cpu))
        return NULL;
    study_lottery_dequeue(queue, task);
    return task;
}

POLICY_FUNCTION bool study_lottery_shared_queue(const scheduler_t *scheduler)
{
    return scheduler->tunable[STUDY_TABLE_SCAN] != 0;
}

POLICY_FUNCTION enum share_attribute study_lottery_shares_by(const scheduler_t *scheduler)
{
    return scheduler->tunable[STUDY_FIXED_TICKETS] ? SHARES_EQUAL : SHARES_BY_TICKETS;
}

POLICY_DEFINITION policy_study_lottery = {
    .name = "lottery",
    .meaning = "the lotteries of studies 1 and 3",
    .source = "Waldspurger and Weihl 1994",
    .order = "Each draw picks one ticket: a task that holds more of them is picked more often.",
    .remark = "ticket {}",
    .remark_kind = REMARK_TICKET,
    .reads = "tickets:fixed_tickets=0",
    .tunables = study_lottery_tunables,
    .tunable_count = sizeof(study_lottery_tunables) / sizeof(study_lottery_tunables[0]),
    .presets = study_lottery_presets,
    .preset_count = sizeof(study_lottery_presets) / sizeof(study_lottery_presets[0]),
    .task_bytes = sizeof(struct study_lottery_task),
    .enqueue = study_lottery_enqueue,
    .dequeue = study_lottery_dequeue,
    .pick = study_lottery_pick,
    .tick = drawing_tick,
    .time_slice = drawing_time_slice,
    .queue_init = study_lottery_queue_init,
    .stopped = drawing_stopped,
    .place = study_lottery_place,
    .push = study_lottery_push,
    .balance = study_lottery_balance,
    .steal = study_lottery_steal,
    .shared_queue = study_lottery_shared_queue,
    .shares_by = study_lottery_shares_by,
    .tickets = study_lottery_given,
    .ticket_parts = study_lottery_unit,
};
