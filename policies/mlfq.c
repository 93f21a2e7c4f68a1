/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * A multi-level feedback queue: whoever uses much of the CPU sinks, level by
 * level, below those who use little; each level is served in turns, and only
 * while all above it are empty. Level 0 is the lowest.
 *
 *   slice      how long a turn lasts at a level
 *   allotment  how long a task may run at a level, over all its turns there,
 *              before it sinks
 *   boost      from time to time all rise to the top: no task starves, and one
 *              that changes its ways gets a new chance. A task that waits for one
 *              of a lower level (on a pipe, say) waits no longer than that one
 *              does; so the boost bounds priority inversion too, and nothing else
 *              does: a policy is not told who waits for whom.
 *
 * As shipped, what a task gets for sleeping cannot be had by pretending. A task
 * pays for the nanoseconds that it ran. Leaving the CPU just before a slice or a
 * tick ends saves nothing, nor does forking a child to go on with (it starts where
 * its parent is). Time asleep earns credit, which lifts a task above all levels
 * for a while: see "credit" below.
 *
 * The boost costs O(levels) for each queue, however many tasks there are, blocked
 * ones too: time is cut into epochs. A task's level counts in the epoch in which
 * it was set; in a later one it is the top. When a queue finds that an epoch has
 * begun, it moves each level's list, as a whole, to the end of the top's. All
 * else is O(1). The order after a boost: who waited at the top, who waited below,
 * level by level, then the task that runs: its turn is over, and the tick that
 * ends now is forgotten like all before it. (What people see, task->level, follows
 * when the task is picked.)
 *
 * On several CPUs, too, no level is served for longer than a tick while a task of
 * a higher one waits (level_cpus.h).
 *
 * Preset `four-quanta` (study 3): one quantum is slice and allotment, and whoever
 * blocks or yields before it ends has a new one. So it can be gamed, and the
 * bottom starves; tests show both. The study finds the next of a level by a scan
 * of the process table, here it is the one that waits longest. If its kernel
 * calls the scheduler at each tick, as xv6 does, its turns are of one tick, and a
 * quantum only says when to sink: slice_0=1 slice_1=1 slice_2=1.
 *
 * Preset `allotment-boost` (study 4): a process has a level and one counter of
 * ticks, which is compared with the allotment and (modulo the slice) ends its
 * turns. Hence: whoever is at work when a tick comes pays for it all; a process
 * that wakes goes on with its slice where it left it; and as each slice divides
 * its level's allotment, none sinks within a slice (with other values it would
 * sink at once, and its turn be over). At each tick the highest level that is
 * ready runs (3.2.1): a task that wakes waits for the tick, not for the end of the
 * slice of a lower one. Among equals the running one goes on until its slice ends
 * (3.2.2). The boost resets the counter, so it ends a turn.
 */

#include "level_cpus.h"
#include "level_lists.h"
#include "policy.h"

#define MLFQ_LEVELS_MAX 8

enum {
    MLFQ_LEVELS,
    MLFQ_SLICE,                                    /* of level 0; the others follow */
    MLFQ_ALLOTMENT = MLFQ_SLICE + MLFQ_LEVELS_MAX, /* likewise */
    MLFQ_BOOST = MLFQ_ALLOTMENT + MLFQ_LEVELS_MAX,
    MLFQ_RELEASE,
    MLFQ_KEEP_SLICE,
    MLFQ_CHARGE_TICKS,
    MLFQ_PREEMPT,
    MLFQ_INHERIT,
    MLFQ_SLEEP_PER_CREDIT,
    MLFQ_PURSE,
    MLFQ_TUNABLES,
};

/* What a task that blocks or yields gets for it. */
enum { RELEASE_KEEPS, RELEASE_FORGETS, RELEASE_RISES };

/* When a task of a lower level gives way. */
enum { PREEMPT_AFTER_TURN, PREEMPT_AT_TICK, PREEMPT_AT_ONCE };

/* Times are in nanoseconds. */
struct mlfq_task {
    uint64_t epoch;            /* in which its level was set */
    uint64_t charged_run_time; /* of its run time, what it has paid for */
    uint64_t charged_at;
    uint64_t allotment_used;
    uint64_t slice_used;
    uint64_t credit;
    uint32_t level; /* at which it is served: its base, or the credit level */
    uint32_t base;
    bool turn_over; /* of a task that runs: it goes to the end of the line */
    bool moved;     /* of one that waits: it came from another CPU, at a tick of this one */
};

struct mlfq_queue {
    struct level_counts counts; /* by rank: see mlfq_rank() */
    struct level_lists lists;   /* of those who wait */
    uint64_t epoch;
    uint64_t next_epoch;  /* the time at which it begins */
    uint64_t credit_time; /* spent at the credit level in this epoch */
};

_Static_assert(sizeof(struct mlfq_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct mlfq_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(MLFQ_LEVELS_MAX < RANKS_MAX, "each level has a rank, and so has the credit level");

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

POLICY_FUNCTION uint32_t mlfq_top(const scheduler_t *scheduler)
{
    return (uint32_t)scheduler->tunable[MLFQ_LEVELS] - 1;
}

POLICY_FUNCTION uint64_t mlfq_ticks(const scheduler_t *scheduler, uint32_t tunable)
{
    return (uint64_t)scheduler->tunable[tunable] * scheduler->tick_ns;
}

/* A level's place in the order of service: the highest comes first. */
POLICY_FUNCTION uint32_t mlfq_rank(uint32_t level)
{
    return MLFQ_LEVELS_MAX - level;
}

/* At the end of this file. */
POLICY_FUNCTION uint64_t mlfq_spend_credit(run_queue_t *queue, mlfq_task_t *own, uint64_t used);
POLICY_FUNCTION void mlfq_earn_credit(const run_queue_t *queue, mlfq_task_t *own);

/* ---- the boost ---- */

POLICY_FUNCTION uint64_t mlfq_epoch(const run_queue_t *queue)
{
    uint64_t length = mlfq_ticks(queue->scheduler, MLFQ_BOOST);
    return length > 0 ? queue->now / length : 0;
}

/* An epoch begins: those who wait rise. */
POLICY_RARE_FUNCTION void mlfq_begin_epoch(run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    mlfq_queue_t *state = mlfq_queue_of(queue);
    uint64_t length = mlfq_ticks(scheduler, MLFQ_BOOST);
    uint32_t top = mlfq_top(scheduler);
    state->epoch = mlfq_epoch(queue);
    state->next_epoch = length > 0 ? (state->epoch + 1) * length : UINT64_MAX;
    state->credit_time = 0;
    for (uint32_t level = top; level > 0 && LOOP_GUARD; level--) {
        uint32_t rank = mlfq_rank(level - 1);
        level_lists_move(&state->lists, &state->counts, rank, mlfq_rank(top),
                         state->counts.waiting[rank]);
    }
}

/* Brings the queue up to its time: first of all in each hook that needs its lists. */
POLICY_FUNCTION void mlfq_boost_queue(run_queue_t *queue)
{
    if (queue->now >= mlfq_queue_of(queue)->next_epoch)
        mlfq_begin_epoch(queue);
}

/* The level at which the task is served now, be it that it has not heard of the boost yet. */
POLICY_FUNCTION uint32_t mlfq_level(const run_queue_t *queue, const task_t *task)
{
    const mlfq_task_t *own = mlfq_task_of(task);
    bool boosted = own->epoch != mlfq_queue_of(queue)->epoch;
    return boosted && own->level == own->base ? mlfq_top(queue->scheduler) : own->level;
}

/* Lets the task take part in a boost that it has missed. False: there was none. */
POLICY_FUNCTION bool mlfq_boost_task(const run_queue_t *queue, task_t *task)
{
    mlfq_task_t *own = mlfq_task_of(task);
    uint64_t epoch = mlfq_queue_of(queue)->epoch;
    if (own->epoch == epoch)
        return false;
    own->level = mlfq_level(queue, task);
    own->base = mlfq_top(queue->scheduler);
    own->epoch = epoch;
    own->allotment_used = 0;
    own->slice_used = 0;
    own->turn_over = true;
    task->level = own->level;
    return true;
}

/* ---- what running costs ---- */

/* Only ticks end turns; so a limit is reached when less than half a tick is left of it. */
POLICY_FUNCTION bool mlfq_used_up(const scheduler_t *scheduler, uint32_t limit, uint64_t used)
{
    return scheduler->tunable[limit] > 0 &&
           used + scheduler->tick_ns / 2 >= mlfq_ticks(scheduler, limit);
}

/* The place of its slice among the tunables; the credit level has that of the top. */
POLICY_FUNCTION uint32_t mlfq_slice(const scheduler_t *scheduler, const mlfq_task_t *own)
{
    uint32_t top = mlfq_top(scheduler);
    return MLFQ_SLICE + (own->level < top ? own->level : top);
}

POLICY_FUNCTION void mlfq_sink_to(mlfq_task_t *own, uint32_t base)
{
    own->level = own->base = base;
    own->turn_over = true;
}

POLICY_FUNCTION void mlfq_pay(run_queue_t *queue, mlfq_task_t *own, uint64_t used)
{
    const scheduler_t *scheduler = queue->scheduler;
    own->slice_used += used;
    own->allotment_used += mlfq_spend_credit(queue, own, used);
    /* Level 0 has no allotment. */
    if (mlfq_used_up(scheduler, MLFQ_ALLOTMENT + own->base, own->allotment_used)) {
        mlfq_sink_to(own, own->base - 1);
        own->allotment_used = 0;
    }
    if (mlfq_used_up(scheduler, mlfq_slice(scheduler, own), own->slice_used))
        own->turn_over = true;
}

/* The task has run: until a tick, or until now, when it stops. */
POLICY_FUNCTION void mlfq_charge(run_queue_t *queue, task_t *task, bool tick)
{
    const scheduler_t *scheduler = queue->scheduler;
    mlfq_task_t *own = mlfq_task_of(task);
    uint64_t used = task->run_time - own->charged_run_time;
    if (scheduler->tunable[MLFQ_CHARGE_TICKS])
        used = tick ? scheduler->tick_ns : 0;
    mlfq_pay(queue, own, used);
    mlfq_boost_queue(queue);
    mlfq_boost_task(queue, task);
    own->charged_run_time = task->run_time;
    own->charged_at = queue->now;
    task->level = own->level;
}

/* The task gave up the CPU by blocking, and wakes now, or by yielding. */
POLICY_FUNCTION void mlfq_release(const run_queue_t *queue, mlfq_task_t *own, bool blocked)
{
    int64_t rule = queue->scheduler->tunable[MLFQ_RELEASE];
    if (rule != RELEASE_KEEPS)
        own->allotment_used = 0;
    if (rule == RELEASE_RISES && blocked && own->base < mlfq_top(queue->scheduler)) {
        own->level += own->level == own->base;
        own->base++;
    }
    if (blocked)
        mlfq_earn_credit(queue, own);
}

/* ---- hooks ---- */

POLICY_FUNCTION void mlfq_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    mlfq_task_t *own = mlfq_task_of(task);
    own->epoch = UINT64_MAX; /* none: it starts at the top */
    own->charged_run_time = task->run_time;
    if (!parent || !scheduler->tunable[MLFQ_INHERIT])
        return;
    const mlfq_task_t *other = mlfq_task_of(parent);
    own->epoch = other->epoch;
    own->level = own->base = other->base;
    own->allotment_used = other->allotment_used;
    own->charged_at = other->charged_at;
}

POLICY_FUNCTION void mlfq_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    mlfq_task_t *own = mlfq_task_of(task);
    mlfq_boost_queue(queue);
    bool inherits = !mlfq_boost_task(queue, task) && reason == ENQUEUE_NEW;
    if (inherits && !queue->scheduler->tunable[MLFQ_CHARGE_TICKS])
        mlfq_pay(queue, own, queue->now - own->charged_at); /* what its parent ran since */
    if (reason == ENQUEUE_WOKEN || reason == ENQUEUE_YIELDED)
        mlfq_release(queue, own, reason == ENQUEUE_WOKEN);

    bool lost_cpu = reason == ENQUEUE_EXPIRED || reason == ENQUEUE_PREEMPTED;
    bool goes_on = lost_cpu && !own->turn_over; /* with its turn, as soon as its level is served */
    bool wakes_in_slice =
        reason == ENQUEUE_WOKEN && !own->turn_over && queue->scheduler->tunable[MLFQ_KEEP_SLICE];
    if (!goes_on && !wakes_in_slice)
        own->slice_used = 0;
    task->level = own->level;
    level_lists_add(&mlfq_queue_of(queue)->lists, level_counts_of(queue), task,
                    mlfq_rank(own->level), goes_on);
}

/* The queue is in its epoch: who was queued before the last boost is in the top's list. */
POLICY_FUNCTION void mlfq_dequeue(run_queue_t *queue, task_t *task)
{
    const mlfq_task_t *own = mlfq_task_of(task);
    mlfq_boost_task(queue, task);
    level_lists_remove(&mlfq_queue_of(queue)->lists, level_counts_of(queue), task,
                       mlfq_rank(own->level));
}

/* Takes out who is next; null: nobody waits. */
POLICY_FUNCTION task_t *mlfq_steal(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    mlfq_boost_queue(queue);
    task_t *task = level_lists_take_first(&mlfq_queue_of(queue)->lists, level_counts_of(queue));
    if (task) {
        mlfq_boost_task(queue, task);
        mlfq_task_of(task)->moved = true;
    }
    return task;
}

POLICY_FUNCTION task_t *mlfq_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = mlfq_steal(queue, cpu);
    if (!task)
        return NULL;
    mlfq_task_t *own = mlfq_task_of(task);
    own->turn_over = false;
    own->moved = false;
    own->charged_at = queue->now;
    level_counts_of(queue)->running = mlfq_rank(own->level);
    queue->remark = own->level;
    return task;
}

POLICY_FUNCTION enum tick_verdict mlfq_tick(run_queue_t *queue, task_t *task)
{
    const mlfq_task_t *own = mlfq_task_of(task);
    level_counts_t *counts = level_counts_of(queue);
    mlfq_charge(queue, task, true);
    counts->running = mlfq_rank(own->level);
    bool higher_waits = level_first(counts) < counts->running;
    bool gives_way = higher_waits && queue->scheduler->tunable[MLFQ_PREEMPT] != PREEMPT_AFTER_TURN;
    return own->turn_over || gives_way ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION void mlfq_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    (void)reason;
    mlfq_charge(queue, task, false);
    level_counts_of(queue)->running = NO_RANK;
}

/* A CPU takes tasks from others at its ticks: those may take over even if not at once. */
POLICY_FUNCTION bool mlfq_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    int64_t rule = queue->scheduler->tunable[MLFQ_PREEMPT];
    bool now = rule == PREEMPT_AT_ONCE || (rule == PREEMPT_AT_TICK && mlfq_task_of(task)->moved);
    return now && mlfq_level(queue, task) > mlfq_level(queue, running);
}

POLICY_FUNCTION uint64_t mlfq_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    int64_t slice = scheduler->tunable[mlfq_slice(scheduler, mlfq_task_of(task))];
    return slice > 0 ? (uint64_t)slice : UINT64_MAX;
}

/* A boost lifts all that wait, except those that are above the top. */
POLICY_FUNCTION uint64_t mlfq_level_now(const scheduler_t *scheduler, const task_t *task,
                                        uint64_t now)
{
    uint64_t length = mlfq_ticks(scheduler, MLFQ_BOOST);
    uint64_t top = mlfq_top(scheduler);
    bool boosted = length > 0 && task->queued_since / length != now / length;
    return boosted && task->level < top ? top : task->level;
}

/* ---- credit ---- */

/*
 * Time asleep earns credit at a low rate, up to a purse of a few ticks. Running
 * spends credit first and the allotment after it. Who wakes with a full purse
 * enters the credit level, which is above all others, for half a purse; who has
 * spent it all falls back to its base, the level to which its allotments have
 * brought it. So a task that turns interactive late is served at once before long,
 * and one that always was need not wait for all those that a boost has brought to
 * the top.
 *
 * Invariant: a task is at the credit level for at most 1/16 (the rate) of the time
 * that it slept; and above level 0 for no longer than that and the allotments, once
 * for each boost. Many tasks together could fill a CPU on credit; so of the time
 * between two boosts half at most is for the credit level.
 */

/* Is the credit level still served in this epoch? Without boosts nothing bounds it. */
POLICY_FUNCTION bool mlfq_credit_counts(const run_queue_t *queue)
{
    uint64_t epoch_length = mlfq_ticks(queue->scheduler, MLFQ_BOOST);
    return epoch_length == 0 || mlfq_queue_of(queue)->credit_time < epoch_length / 2;
}

/* Gives what the credit did not cover. */
POLICY_FUNCTION uint64_t mlfq_spend_credit(run_queue_t *queue, mlfq_task_t *own, uint64_t used)
{
    uint64_t on_credit = used < own->credit ? used : own->credit;
    own->credit -= on_credit;
    if (own->level > own->base) {
        mlfq_queue_of(queue)->credit_time += used;
        if (on_credit < used || !mlfq_credit_counts(queue))
            mlfq_sink_to(own, own->base);
    }
    return used - on_credit;
}

/* The task has slept since it was charged last. */
POLICY_FUNCTION void mlfq_earn_credit(const run_queue_t *queue, mlfq_task_t *own)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t price = (uint64_t)scheduler->tunable[MLFQ_SLEEP_PER_CREDIT];
    uint64_t purse = mlfq_ticks(scheduler, MLFQ_PURSE);
    if (price == 0)
        return;
    own->credit += (queue->now - own->charged_at) / price;
    if (own->credit > purse)
        own->credit = purse;
    if (own->level == own->base && own->credit == purse && mlfq_credit_counts(queue)) {
        own->level = mlfq_top(scheduler) + 1;
        own->credit -= purse / 2;
    }
}

/* ---- what can be set ---- */

static const struct tunable mlfq_tunables[] = {
    [MLFQ_LEVELS] = {"levels", "number of levels, without the one for those that run on credit", 1,
                     4, MLFQ_LEVELS_MAX},
    [MLFQ_SLICE] = {"slice_0", "ticks of a turn at the lowest level; 0: no limit", 0, 32, 100000},
    {"slice_1", "ticks of a turn; 0: no limit", 0, 8, 100000},
    {"slice_2", "ticks of a turn; 0: no limit", 0, 4, 100000},
    {"slice_3", "ticks of a turn; 0: no limit", 0, 2, 100000},
    {"slice_4", "ticks of a turn; 0: no limit", 0, 1, 100000},
    {"slice_5", "ticks of a turn; 0: no limit", 0, 1, 100000},
    {"slice_6", "ticks of a turn; 0: no limit", 0, 1, 100000},
    {"slice_7", "ticks of a turn; 0: no limit", 0, 1, 100000},
    [MLFQ_ALLOTMENT] = {"allotment_0", "no effect: there is no level below", 0, 0, 0},
    {"allotment_1", "ticks at this level before sinking; 0: no limit", 0, 32, 100000},
    {"allotment_2", "ticks at this level before sinking; 0: no limit", 0, 16, 100000},
    {"allotment_3", "ticks at this level before sinking; 0: no limit", 0, 8, 100000},
    {"allotment_4", "ticks at this level before sinking; 0: no limit", 0, 4, 100000},
    {"allotment_5", "ticks at this level before sinking; 0: no limit", 0, 4, 100000},
    {"allotment_6", "ticks at this level before sinking; 0: no limit", 0, 4, 100000},
    {"allotment_7", "ticks at this level before sinking; 0: no limit", 0, 4, 100000},
    [MLFQ_BOOST] = {"boost", "ticks between boosts of all to the top; 0: none", 0, 480, 1000000},
    [MLFQ_RELEASE] = {"release",
                      "blocking or yielding 0: changes nothing; 1: gives a new allotment; "
                      "2: and blocking raises a level",
                      RELEASE_KEEPS, RELEASE_KEEPS, RELEASE_RISES},
    [MLFQ_KEEP_SLICE] = {"keep_slice", "1: who wakes goes on with the slice that it left", 0, 0, 1},
    [MLFQ_CHARGE_TICKS] = {"charge_ticks",
                           "1: who runs at a tick pays for all of it; 0: for the time it ran", 0, 0,
                           1},
    [MLFQ_PREEMPT] = {"preempt",
                      "a higher level takes over 0: when a turn ends; 1: at a tick; 2: at once",
                      PREEMPT_AFTER_TURN, PREEMPT_AT_ONCE, PREEMPT_AT_ONCE},
    [MLFQ_INHERIT] = {"inherit",
                      "a child starts 0: at the top; 1: with its parent's level and allotment", 0,
                      1, 1},
    [MLFQ_SLEEP_PER_CREDIT] = {"sleep_per_credit",
                               "ticks asleep that earn a tick of credit; 0: none", 0, 16, 100000},
    [MLFQ_PURSE] = {"purse", "ticks of credit that a task can save; the credit level costs half", 2,
                    2, 1000},
};

_Static_assert(sizeof(mlfq_tunables) / sizeof(mlfq_tunables[0]) == MLFQ_TUNABLES, "all are there");

static const struct preset mlfq_presets[] = {
    {"four-quanta",
     "quanta 1, 2, 4 and no limit; no boost; a new quantum for who gives up the CPU (study 3)",
     {{"slice_3", 1},
      {"slice_2", 2},
      {"slice_1", 4},
      {"slice_0", 0},
      {"allotment_3", 1},
      {"allotment_2", 2},
      {"allotment_1", 4},
      {"boost", 0},
      {"release", RELEASE_FORGETS},
      {"charge_ticks", 1},
      {"preempt", PREEMPT_AT_TICK},
      {"inherit", 0},
      {"sleep_per_credit", 0}}},
    {"allotment-boost",
     "allotments 8, 16, 32 and no limit, slices 2, 4, 8, 32; all rise every 480 ticks (study 4)",
     {{"keep_slice", 1},
      {"charge_ticks", 1},
      {"preempt", PREEMPT_AT_TICK},
      {"inherit", 0},
      {"sleep_per_credit", 0}}},
};

POLICY_DEFINITION policy_mlfq = {
    .name = "mlfq",
    .meaning = "multi-level feedback queue: who runs much sinks, all rise from time to time",
    .source = "Corbató 1962; Arpaci-Dusseau 2018",
    .order = "The highest level at which a task waits is served; the task that came first is next.",
    .levels = "A task that uses up its time sinks, and a boost lifts all; level 0 is served last.",
    .remark = "level {}: the best at which a task waits",
    .boost = "boost",
    .level_order = LEVELS_HIGHEST_FIRST,
    .remark_kind = REMARK_LEVEL,
    .cost = COST_CONSTANT,
    .tunables = mlfq_tunables,
    .tunable_count = MLFQ_TUNABLES,
    .presets = mlfq_presets,
    .preset_count = sizeof(mlfq_presets) / sizeof(mlfq_presets[0]),
    .task_bytes = sizeof(struct mlfq_task),
    .enqueue = mlfq_enqueue,
    .dequeue = mlfq_dequeue,
    .pick = mlfq_pick,
    .tick = mlfq_tick,
    .time_slice = mlfq_time_slice,
    .queue_init = level_queue_init,
    .task_init = mlfq_task_init,
    .stopped = mlfq_stopped,
    .preempts = mlfq_preempts,
    .place = place_by_level,
    .balance = balance_by_level,
    .steal = mlfq_steal,
    .level = mlfq_level_now,
};
