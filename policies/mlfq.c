/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * A multi-level feedback queue: a task that uses much CPU is demoted, level by level, below tasks
 * that use little. Each level is served in turns, and only while all higher levels are empty
 * (feedback_levels.h). Level 0 is the lowest.
 *
 *   slice      the length of a turn at a level
 *   allotment  how long a task may run at a level, over all its turns there,
 *              before it is demoted
 *   boost      periodically moves all tasks to the top: no task starves, and a
 *              task that changes its behaviour gets a new chance. If a task waits
 *              for one of a lower level (on a pipe, say), the boost bounds its
 *              wait. Nothing else bounds this priority inversion: the policy does not know the wait
 *              graph.
 *
 * Tasks cannot get the credit for sleeping by tricks. A task pays for the nanoseconds that it ran.
 * Leaving the CPU just before a slice or a tick ends saves nothing. Forking a child to continue
 * saves nothing either, because it starts where its parent is. Time asleep earns credit, which
 * raises a task above all levels for a while.
 *
 * On several CPUs, too, no level is served for longer than a tick while a task of a higher one
 * waits (level_cpus.h).
 *
 * The presets, from studies 3 and 4, are in studies/study-mlfq.c.
 */

#include "feedback_levels.h"
#include "level_cpus.h"
#include "policy.h"

enum {
    MLFQ_SLEEP_PER_CREDIT = FEEDBACK_TUNABLE_COUNT,
    MLFQ_PURSE,
};

static const struct tunable mlfq_tunables[] = {
    FEEDBACK_TUNABLES,
    [MLFQ_SLEEP_PER_CREDIT] = {"sleep_per_credit",
                               "ticks asleep that earn a tick of credit; 0: none", 0, 16, 100000},
    [MLFQ_PURSE] =
        {"purse", "most ticks of credit that a task can save; entering the credit level takes half",
         2, 2, 1000},
};

/* Times are in nanoseconds. */
struct mlfq_task {
    struct feedback_task feedback;
    uint64_t charged_run_time; /* run time that is already charged */
    uint64_t charged_at;
    uint64_t credit;
};

struct mlfq_queue {
    struct feedback_queue feedback;
    uint64_t credit_time;  /* spent at the credit level in an epoch */
    uint64_t credit_epoch; /* that epoch */
};

_Static_assert(sizeof(struct mlfq_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct mlfq_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct mlfq_task SHARED_MEMORY mlfq_task_t;
typedef struct mlfq_queue SHARED_MEMORY mlfq_queue_t;

POLICY_FUNCTION mlfq_task_t *mlfq_task_of(const task_t *task)
{
    return STATE_OF(task, struct mlfq_task);
}

POLICY_FUNCTION mlfq_queue_t *mlfq_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct mlfq_queue);
}

/* ---- credit ---- */

/*
 * Time asleep earns credit at a low rate, up to a limit of a few ticks (the purse). Running spends
 * credit first, then the allotment. A task that wakes with a full purse enters the credit level,
 * which is above all others, for half a purse. After spending its credit it returns to its base,
 * the level set by its allotments. So a task that becomes interactive late is soon served at once.
 * A task that always was interactive does not wait for all tasks that a boost has moved to the top.
 *
 * Invariant: a task is at the credit level for at most 1/16 (the rate) of its time asleep. Once per
 * boost, its time above level 0 is at most that plus the allotments. Many tasks together could fill
 * a CPU on credit. So at most half of the time between two boosts belongs to the credit level.
 */

/* Returns true if the credit level is still served in this epoch. Without boosts nothing bounds
 * it. */
POLICY_FUNCTION bool mlfq_credit_counts(const run_queue_t *queue)
{
    uint64_t epoch_length = feedback_ticks(queue->scheduler, FEEDBACK_BOOST);
    const mlfq_queue_t *state = mlfq_queue_of(queue);
    bool spent_now = state->credit_epoch == state->feedback.epoch;
    return epoch_length == 0 || !spent_now || state->credit_time < epoch_length / 2;
}

/* Spends credit. Returns the time that the credit did not cover. */
POLICY_FUNCTION uint64_t mlfq_spend_credit(run_queue_t *queue, mlfq_task_t *task_state,
                                           uint64_t used)
{
    uint64_t on_credit = used < task_state->credit ? used : task_state->credit;
    task_state->credit -= on_credit;
    if (task_state->feedback.level > task_state->feedback.base) {
        mlfq_queue_t *state = mlfq_queue_of(queue);
        if (state->credit_epoch != state->feedback.epoch)
            state->credit_time = 0;
        state->credit_epoch = state->feedback.epoch;
        state->credit_time += used;
        if (on_credit < used || !mlfq_credit_counts(queue))
            feedback_sink_to(&task_state->feedback, task_state->feedback.base);
    }
    return used - on_credit;
}

/* Adds credit for the sleep since the last charge. */
POLICY_FUNCTION void mlfq_earn_credit(const run_queue_t *queue, mlfq_task_t *state)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t price = (uint64_t)scheduler->tunable[MLFQ_SLEEP_PER_CREDIT];
    uint64_t purse = feedback_ticks(scheduler, MLFQ_PURSE);
    if (price == 0)
        return;
    state->credit += (queue->now - state->charged_at) / price;
    if (state->credit > purse)
        state->credit = purse;
    if (state->feedback.level == state->feedback.base && state->credit == purse &&
        mlfq_credit_counts(queue)) {
        state->feedback.level = feedback_top(scheduler) + 1;
        state->credit -= purse / 2;
    }
}

/* ---- the cost of running ---- */

POLICY_FUNCTION void mlfq_pay(run_queue_t *queue, mlfq_task_t *state, uint64_t used)
{
    uint64_t allotment = mlfq_spend_credit(queue, state, used);
    feedback_pay(queue->scheduler, &state->feedback, used, allotment);
}

/* Charges the task for its run: until a tick, or until now when it stops. */
POLICY_FUNCTION void mlfq_charge(run_queue_t *queue, task_t *task)
{
    mlfq_task_t *state = mlfq_task_of(task);
    mlfq_pay(queue, state, task->run_time - state->charged_run_time);
    feedback_boost_queue(queue);
    feedback_boost_task(queue, task);
    state->charged_run_time = task->run_time;
    state->charged_at = queue->now;
    task->level = state->feedback.level;
}

/* ---- hooks ---- */

POLICY_FUNCTION void mlfq_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    mlfq_task_t *state = mlfq_task_of(task);
    (void)scheduler;
    state->feedback.epoch = UINT64_MAX;
    state->charged_run_time = task->run_time;
    if (!parent)
        return;
    const mlfq_task_t *other = mlfq_task_of(parent);
    state->feedback.epoch = other->feedback.epoch;
    state->feedback.level = state->feedback.base = other->feedback.base;
    state->feedback.allotment_used = other->feedback.allotment_used;
    state->charged_at = other->charged_at;
}

POLICY_FUNCTION void mlfq_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    mlfq_task_t *state = mlfq_task_of(task);
    feedback_boost_queue(queue);
    bool boosted = feedback_boost_task(queue, task);
    if (reason == ENQUEUE_NEW && !boosted)
        mlfq_pay(queue, state, queue->now - state->charged_at); /* its parent's run since then */
    if (reason == ENQUEUE_WOKEN)
        mlfq_earn_credit(queue, state);
    bool lost_cpu = reason == ENQUEUE_EXPIRED || reason == ENQUEUE_PREEMPTED;
    bool goes_on = lost_cpu && !state->feedback.turn_over;
    if (!goes_on)
        state->feedback.slice_used = 0;
    feedback_add(queue, task, goes_on);
}

POLICY_FUNCTION task_t *mlfq_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu; /* all tasks that wait here may run here */
    task_t *task = feedback_take(queue, NO_CPU);
    if (task) {
        feedback_begin_turn(queue, task);
        mlfq_task_of(task)->charged_at = queue->now;
    }
    return task;
}

POLICY_FUNCTION enum tick_verdict mlfq_tick(run_queue_t *queue, task_t *task)
{
    const feedback_task_t *state = feedback_task_of(task);
    level_counts_t *counts = level_counts_of(queue);
    mlfq_charge(queue, task);
    counts->running = feedback_rank(state->level);
    bool higher_waits = level_first(counts) < counts->running;
    return state->turn_over || higher_waits ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION void mlfq_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    (void)reason;
    mlfq_charge(queue, task);
    level_counts_of(queue)->running = NO_RANK;
}

POLICY_FUNCTION bool mlfq_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    return feedback_level(queue, task) > feedback_level(queue, running);
}

POLICY_DEFINITION policy_mlfq = {
    .name = "mlfq",
    .meaning = "multi-level feedback queue: a task that runs much is demoted; boosts are periodic",
    .source = "Corbató 1962; Arpaci-Dusseau 2018",
    .order = "The highest level at which a task waits is served; the task that came first is next.",
    .levels = "A task that uses up its time sinks, and a boost lifts all; level 0 is served last.",
    .remark = "level {}: the best at which a task waits",
    .boost = "boost",
    .level_order = LEVELS_HIGHEST_FIRST,
    .remark_kind = REMARK_LEVEL,
    .cost = COST_CONSTANT,
    .reads = "",
    .tunables = mlfq_tunables,
    .tunable_count = sizeof(mlfq_tunables) / sizeof(mlfq_tunables[0]),
    .rounds = 2,
    .task_bytes = sizeof(struct mlfq_task),
    .enqueue = mlfq_enqueue,
    .dequeue = feedback_dequeue,
    .pick = mlfq_pick,
    .tick = mlfq_tick,
    .time_slice = feedback_time_slice,
    .queue_init = level_queue_init,
    .task_init = mlfq_task_init,
    .stopped = mlfq_stopped,
    .preempts = mlfq_preempts,
    .place = place_by_level,
    .balance = balance_by_level,
    .steal = feedback_steal,
    .level = feedback_level_now,
};
