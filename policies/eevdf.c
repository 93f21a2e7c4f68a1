/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Earliest eligible virtual deadline first (Stoica and Abdel-Wahab 1995), with the rules of Linux's
 * fair class since 6.6.
 *
 * Tasks share a CPU by the weights of their nice levels (nice_weights.h). A task is eligible while
 * its service does not exceed its part (lag.h). It asks for service in requests of one slice. A
 * request's virtual deadline is the virtual time when it would be complete at the task's rate. The
 * eligible task with the earliest deadline runs. So only weights determine shares; slices determine
 * how soon, and in how many pieces, a share is served.
 *
 * Length of a turn. A turn lasts as long as the shortest slice that any task of the CPU asks for
 * (`parity`), unless the task blocks or is preempted. A task that wakes preempts if it has an
 * earlier deadline, and the running task has had its part or asked for a longer slice. After a
 * turn, the earliest deadline is looked for again. `exact`: a timer ends the turn (1) or the
 * request (2); else the first tick after it.
 *
 * Sleeping. A task that blocks while it owes service keeps competing without running until it owes
 * none, or wakes (`delay`). So a short sleep brings no advantage. A task with service owed to it
 * gets that when it returns: at most two slices, or a tick. The others owe what is owed to one
 * task: all lags always sum to 0.
 *
 * A new task is owed nothing, and first asks for half a slice. A task that moves to another CPU, or
 * gets another nice value, keeps its lag and the rest of its request. A task that yields postpones
 * its deadline by a slice. CPUs are balanced as in cfs.c.
 */

#include "lag.h"
#include "load_cpus.h"
#include "policy.h"
#include "task_tree.h"

enum { PARITY_NONE, PARITY_SHORTEST, PARITY_REQUEST };
enum { EXACT_NEVER, EXACT_TURN, EXACT_REQUEST };
enum { EEVDF_SLICE, EEVDF_SCALING, EEVDF_PARITY, EEVDF_DELAY, EEVDF_EXACT, EEVDF_WAKEUP };

static const struct tunable eevdf_tunables[] = {
    [EEVDF_SLICE] = {"base_slice_us", "microseconds of a request, for tasks without a slice", 100,
                     700, 100000},
    [EEVDF_SCALING] = {"scaling", "1: base_slice_us is longer on more CPUs, 4 times on 8 or more",
                       0, 1, 1},
    [EEVDF_PARITY] = {"parity",
                      "protection of an eligible task's turn: 0: none; 1: the shortest slice of "
                      "the waiting tasks; 2: its request",
                      0, 1, 2},
    [EEVDF_DELAY] = {"delay",
                     "1: a task that owes service when it blocks leaves the competition later", 0,
                     1, 1},
    [EEVDF_EXACT] = {"exact",
                     "1: turns end by a timer; 0: at ticks; 2: requests end by a timer, protection "
                     "at ticks",
                     0, 1, 2},
    [EEVDF_WAKEUP] =
        {"wakeup", "a waking task preempts if it comes before: 0: the running task; 1: all tasks",
         0, 0, 1},
};

static const struct preset eevdf_presets[] = {
    {"ticks", "turns end at ticks, as on a kernel without timers for it", {{"exact", 0}}},
    {"linux-6-12",
     "a turn lasts a task's whole slice, as on Linux 6.12 to 6.16; later, at most the shortest "
     "slice of the waiting tasks",
     {{"parity", 2}}},
    {"paper",
     "requests may be interrupted, and tasks leave at once",
     {{"parity", 0}, {"delay", 0}}},
    {"linux-7-3",
     "a timer ends a request, ticks end shorter turns, and a waking task preempts only if it is "
     "next: nearest to Linux 7.3 in docs/linux-agreement.md",
     {{"exact", 2}, {"wakeup", 1}}},
};

enum eevdf_place { EEVDF_AWAY, EEVDF_QUEUED, EEVDF_RUNNING, EEVDF_DELAYED };

struct eevdf_task {
    struct task_tree_node node; /* key: its deadline; value: its virtual time; other: its slice */
    struct lag_member member;
    uint64_t deadline; /* virtual, of the request */
    uint64_t turn_end; /* virtual; its turn is protected until then */
    int64_t slice;     /* nanoseconds of the request */
    int64_t left;      /* while it is in no queue: ns left of a request; 0: none */
    uint64_t round;    /* of the queue, when it was delayed */
    uint64_t place;    /* enum eevdf_place */
};

struct eevdf_queue {
    struct lag_queue fair;
    struct task_tree waiting;
    struct task_tree delayed; /* blocked tasks that owe service */
    uint64_t round;           /* times that the CPU became idle: all debts end then */
};

struct eevdf_times {
    int64_t slice; /* nanoseconds */
};

_Static_assert(sizeof(struct eevdf_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct eevdf_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct eevdf_task SHARED_MEMORY eevdf_task_t;
typedef struct eevdf_queue SHARED_MEMORY eevdf_queue_t;

#define EEVDF_SLICE_LEAST 100000    /* ns, the range of requests, as on Linux */
#define EEVDF_SLICE_MOST  100000000 /* ns */

POLICY_FUNCTION eevdf_task_t *eevdf_task_of(const task_t *task)
{
    return STATE_OF(task, struct eevdf_task);
}

POLICY_FUNCTION eevdf_queue_t *eevdf_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct eevdf_queue);
}

POLICY_FUNCTION void eevdf_scheduler_init(scheduler_t *scheduler)
{
    int64_t factor = 1000; /* of microseconds */
    if (scheduler->tunable[EEVDF_SCALING] != 0)
        factor *= (int64_t)load_time_factor(scheduler);
    STATE_OF(scheduler, struct eevdf_times)->slice = scheduler->tunable[EEVDF_SLICE] * factor;
}

POLICY_FUNCTION int64_t eevdf_slice(const scheduler_t *scheduler, const task_t *task)
{
    int64_t slice = (int64_t)task->slice;
    if (slice == 0)
        return STATE_OF(scheduler, struct eevdf_times)->slice;
    slice = slice > EEVDF_SLICE_LEAST ? slice : EEVDF_SLICE_LEAST;
    return slice < EEVDF_SLICE_MOST ? slice : EEVDF_SLICE_MOST;
}

/* ---- requests ---- */

/* Returns the virtual time until the deadline; less than 0: it has passed. */
POLICY_FUNCTION int64_t eevdf_until_deadline(const eevdf_task_t *state)
{
    return (int64_t)(state->deadline - state->member.time);
}

POLICY_FUNCTION void eevdf_ask(eevdf_task_t *state, int64_t ns)
{
    state->deadline = state->member.time + (uint64_t)lag_virtual(ns, state->member.weight);
}

/* The next request. */
POLICY_FUNCTION void eevdf_ask_next(const run_queue_t *queue, task_t *task)
{
    eevdf_task_of(task)->slice = eevdf_slice(queue->scheduler, task);
    eevdf_ask(eevdf_task_of(task), eevdf_task_of(task)->slice);
}

/* Returns the virtual time until the turn's protection ends; 0 or less: it has ended. */
POLICY_FUNCTION int64_t eevdf_until_turn_end(const eevdf_task_t *state)
{
    return (int64_t)(state->turn_end - state->member.time);
}

/* Protects the turn for this long, but at most until the request ends. */
POLICY_FUNCTION void eevdf_protect(eevdf_task_t *state, int64_t ns)
{
    state->turn_end = state->member.time + (uint64_t)lag_virtual(ns, state->member.weight);
    if ((int64_t)(state->deadline - state->turn_end) < 0)
        state->turn_end = state->deadline;
}

/* Sets the end of the running task's turn, or of its rest. A task with a shorter slice may have
 * come. */
POLICY_FUNCTION void eevdf_set_turn_end(run_queue_t *queue, eevdf_task_t *state)
{
    const task_t *root = eevdf_queue_of(queue)->waiting.root;
    uint64_t shortest = root ? TREE_NODE(root)->least_other : UINT64_MAX;
    uint64_t end = state->turn_end;
    if (queue->scheduler->tunable[EEVDF_PARITY] == PARITY_SHORTEST && shortest < INT64_MAX)
        eevdf_protect(state, (int64_t)shortest);
    if ((int64_t)(state->turn_end - end) > 0)
        state->turn_end = end;
    if (!queue->scheduler->tunable[EEVDF_EXACT])
        return;
    bool full_request = queue->scheduler->tunable[EEVDF_PARITY] == PARITY_NONE ||
                        queue->scheduler->tunable[EEVDF_EXACT] == EXACT_REQUEST;
    int64_t part = full_request ? eevdf_until_deadline(state) : eevdf_until_turn_end(state);
    part *= (int64_t)state->member.weight;
    queue->turn_end = queue->now + (uint64_t)((part + NICE_WEIGHT_USUAL - 1) / NICE_WEIGHT_USUAL);
}

POLICY_FUNCTION void eevdf_begin_turn(run_queue_t *queue, eevdf_task_t *state)
{
    bool protects = queue->scheduler->tunable[EEVDF_PARITY] != PARITY_NONE;
    state->turn_end = protects ? state->deadline : state->member.time;
    eevdf_set_turn_end(queue, state);
}

/* ---- the competition ---- */

POLICY_FUNCTION void eevdf_join(run_queue_t *queue, task_t *task)
{
    eevdf_task_t *state = eevdf_task_of(task);
    lag_join(queue, &state->member, nice_weight(task->nice));
    state->slice = eevdf_slice(queue->scheduler, task);
    eevdf_ask(state, state->left > 0 && state->left < state->slice ? state->left : state->slice);
}

POLICY_FUNCTION void eevdf_leave_competition(run_queue_t *queue, task_t *task)
{
    eevdf_task_t *state = eevdf_task_of(task);
    int64_t tick = (int64_t)queue->scheduler->tick_ns;
    state->left = lag_service(eevdf_until_deadline(state), state->member.weight);
    state->place = EEVDF_AWAY;
    lag_leave(queue, &state->member, 2 * state->slice > tick ? 2 * state->slice : tick);
}

POLICY_FUNCTION void eevdf_charge(run_queue_t *queue, task_t *task)
{
    lag_charge(queue, &eevdf_task_of(task)->member, run_time_now(queue, task));
}

/* Advances the queue's clock to `now`. */
POLICY_FUNCTION void eevdf_advance(run_queue_t *queue)
{
    task_t *running = queue->current;
    if (running && eevdf_task_of(running)->place == EEVDF_RUNNING)
        eevdf_charge(queue, running);
}

/* Keeps a task in the competition that blocks and owes service. */
POLICY_FUNCTION void eevdf_delay(run_queue_t *queue, task_t *task)
{
    eevdf_queue_t *all = eevdf_queue_of(queue);
    eevdf_task_t *state = eevdf_task_of(task);
    state->place = EEVDF_DELAYED;
    state->round = all->round;
    task_tree_insert(&all->delayed, task, state->deadline, state->member.time, 0);
}

/* Removes a task if it is delayed. If it has worked off its debt by waiting, it owes nothing and
 * starts a new request on its return. */
POLICY_FUNCTION void eevdf_end_delay(run_queue_t *queue, task_t *task)
{
    eevdf_queue_t *all = eevdf_queue_of(queue);
    if (!task || eevdf_task_of(task)->place != EEVDF_DELAYED)
        return;
    eevdf_task_t *state = eevdf_task_of(task);
    if (state->round == all->round) {
        task_tree_remove(&all->delayed, task);
        eevdf_leave_competition(queue, task);
        if (state->member.lag < 0)
            return;
    }
    state->place = EEVDF_AWAY;
    state->member.weight = 0;
    state->member.lag = 0;
    state->left = 0;
}

/* Returns a delayed task that owes nothing any more, or null. Each hook for arrival or departure
 * removes one, so that none stays for long. */
POLICY_FUNCTION task_t *eevdf_paid_off(const run_queue_t *queue)
{
    const eevdf_queue_t *all = eevdf_queue_of(queue);
    return task_tree_first(&all->delayed, all->fair.clock);
}

/* Clears all debts when the CPU becomes idle: a task that is alone neither owes service nor is
 * owed any. */
POLICY_FUNCTION void eevdf_end_all_delays(run_queue_t *queue)
{
    eevdf_queue_t *all = eevdf_queue_of(queue);
    all->delayed.root = NULL;
    all->round++;
    all->fair.sum.load = 0;
    all->fair.rest = 0;
}

/* ---- arrival and departure of tasks ---- */

POLICY_FUNCTION void eevdf_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    eevdf_task_t *state = eevdf_task_of(task);
    eevdf_advance(queue);
    eevdf_end_delay(queue, task);
    eevdf_end_delay(queue, eevdf_paid_off(queue));
    if (reason == ENQUEUE_NEW)
        state->left = eevdf_slice(queue->scheduler, task) / 2;
    if (state->member.weight == 0)
        eevdf_join(queue, task);
    else if (eevdf_until_deadline(state) <= 0)
        eevdf_ask_next(queue, task);
    if (reason == ENQUEUE_YIELDED)
        state->deadline += (uint64_t)lag_virtual(state->slice, state->member.weight);
    state->place = EEVDF_QUEUED;
    task_tree_insert(&eevdf_queue_of(queue)->waiting, task, state->deadline, state->member.time,
                     (uint64_t)state->slice);
}

POLICY_FUNCTION void eevdf_dequeue(run_queue_t *queue, task_t *task)
{
    eevdf_advance(queue);
    task_tree_remove(&eevdf_queue_of(queue)->waiting, task);
    eevdf_leave_competition(queue, task);
}

POLICY_FUNCTION void eevdf_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    eevdf_task_t *state = eevdf_task_of(task);
    eevdf_charge(queue, task);
    if (reason == STOP_RUNNABLE)
        return; /* it is queued again at once */
    if (reason == STOP_BLOCKED && queue->scheduler->tunable[EEVDF_DELAY] &&
        !lag_eligible(queue, &state->member)) {
        eevdf_delay(queue, task);
        return;
    }
    eevdf_leave_competition(queue, task);
    state->left = 0;
}

POLICY_FUNCTION void eevdf_leave(run_queue_t *queue, task_t *task)
{
    eevdf_advance(queue);
    eevdf_end_delay(queue, task);
}

/* Keeps the lag and the request in nanoseconds under the new weight. */
POLICY_FUNCTION void eevdf_changed(run_queue_t *queue, task_t *task)
{
    eevdf_task_t *state = eevdf_task_of(task);
    eevdf_advance(queue);
    eevdf_end_delay(queue, task);
    if (state->place != EEVDF_RUNNING || state->member.weight == nice_weight(task->nice))
        return;
    eevdf_leave_competition(queue, task);
    eevdf_join(queue, task);
    state->place = EEVDF_RUNNING;
}

/* ---- the task that runs, and the length of its turn ---- */

/* Returns the eligible task with the earliest deadline. If all eligible tasks are delayed, it
 * returns the task that is closest to being eligible. */
POLICY_FUNCTION task_t *eevdf_first(const run_queue_t *queue)
{
    const eevdf_queue_t *all = eevdf_queue_of(queue);
    if (!all->waiting.root)
        return NULL;
    uint64_t least = TREE_NODE(all->waiting.root)->least;
    uint64_t clock = all->fair.clock;
    return task_tree_first(&all->waiting, (int64_t)(least - clock) > 0 ? least : clock);
}

POLICY_FUNCTION task_t *eevdf_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    eevdf_end_delay(queue, eevdf_paid_off(queue));
    task_t *task = eevdf_first(queue);
    if (!task) {
        eevdf_end_all_delays(queue);
        return NULL;
    }
    eevdf_task_t *state = eevdf_task_of(task);
    task_tree_remove(&eevdf_queue_of(queue)->waiting, task);
    state->place = EEVDF_RUNNING;
    state->member.charged = task->run_time;
    eevdf_begin_turn(queue, state);
    queue->remark = state->deadline;
    return task;
}

/* Returns true if no wake-up may preempt the running task. */
POLICY_FUNCTION bool eevdf_protected(const run_queue_t *queue, const eevdf_task_t *running)
{
    return eevdf_until_turn_end(running) > 0 && lag_eligible(queue, &running->member);
}

/* Ends the turn if another task waits. A task that is alone continues with its next request. */
POLICY_FUNCTION enum tick_verdict eevdf_turn_over(run_queue_t *queue, task_t *task)
{
    eevdf_task_t *state = eevdf_task_of(task);
    eevdf_charge(queue, task);
    bool over = eevdf_until_turn_end(state) <= 0;
    if (over && queue->queued > 0)
        return TICK_PREEMPT;
    if (eevdf_until_deadline(state) <= 0)
        eevdf_ask_next(queue, task);
    if (over)
        eevdf_begin_turn(queue, state);
    else
        eevdf_set_turn_end(queue, state);
    return TICK_CONTINUE;
}

POLICY_FUNCTION enum tick_verdict eevdf_tick(run_queue_t *queue, task_t *task)
{
    eevdf_end_delay(queue, eevdf_paid_off(queue));
    return eevdf_turn_over(queue, task);
}

POLICY_FUNCTION bool eevdf_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    const eevdf_task_t *state = eevdf_task_of(task);
    const eevdf_task_t *other = eevdf_task_of(running);
    if (other->place != EEVDF_RUNNING || !lag_eligible(queue, &state->member))
        return false;
    if (state->slice >= other->slice && eevdf_protected(queue, other))
        return false;
    if (queue->scheduler->tunable[EEVDF_WAKEUP] && eevdf_first(queue) != task)
        return false;
    return !lag_eligible(queue, &other->member) || (int64_t)(state->deadline - other->deadline) < 0;
}

/* In ticks, for display. */
POLICY_FUNCTION uint64_t eevdf_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    return (uint64_t)eevdf_slice(scheduler, task) / scheduler->tick_ns + 1;
}

POLICY_FUNCTION task_t *eevdf_steal(run_queue_t *queue, uint32_t cpu)
{
    const eevdf_queue_t *all = eevdf_queue_of(queue);
    task_t *task = eevdf_first(queue);
    if (task && !task_may_run_on(task, cpu))
        task = task_tree_search_on(&all->waiting, all->fair.clock, cpu);
    if (!task || !load_move_evens(queue, eevdf_task_of(task)->member.weight, cpu))
        return NULL;
    eevdf_dequeue(queue, task);
    return task;
}

POLICY_FUNCTION enum share_attribute eevdf_shares_by(const scheduler_t *scheduler)
{
    (void)scheduler;
    return SHARES_BY_NICE;
}

POLICY_DEFINITION policy_eevdf = {
    .name = "eevdf",
    .meaning =
        "Linux's scheduler since 6.6: the earliest virtual deadline of the tasks owed service",
    .source = "Stoica and Abdel-Wahab 1995; Linux since 6.6",
    .order =
        "Of the tasks that have had no more than their part, the one with the earliest virtual "
        "deadline is next.",
    .remark = "the earliest virtual deadline: {}",
    .remark_kind = REMARK_TIME,
    .cost = COST_LOGARITHMIC,
    .reads = "nice slice",
    .tunables = eevdf_tunables,
    .tunable_count = sizeof(eevdf_tunables) / sizeof(eevdf_tunables[0]),
    .presets = eevdf_presets,
    .preset_count = sizeof(eevdf_presets) / sizeof(eevdf_presets[0]),
    .rounds = 4,
    .task_bytes = sizeof(struct eevdf_task),
    .enqueue = eevdf_enqueue,
    .dequeue = eevdf_dequeue,
    .pick = eevdf_pick,
    .tick = eevdf_tick,
    .time_slice = eevdf_time_slice,
    .scheduler_init = eevdf_scheduler_init,
    .stopped = eevdf_stopped,
    .turn_over = eevdf_turn_over,
    .changed = eevdf_changed,
    .leave = eevdf_leave,
    .preempts = eevdf_preempts,
    .place = load_place,
    .balance = load_balance,
    .steal = eevdf_steal,
    .shares_by = eevdf_shares_by,
};
