/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Priority scheduling: the task of the highest priority runs; tasks of equal priority take turns.
 * Level 0 is the highest. A waiting task rises by a level at every multiple of the aging interval,
 * so that none starves (aging_lists.h). After its turn it returns to its own level.
 *
 * On several CPUs, too, no task runs for longer than a tick while a higher one waits. A task that
 * wakes goes to the CPU that serves the lowest level. At its ticks each CPU looks for a task that
 * is higher than its own (level_cpus.h).
 *
 * With `inherit`, a task is served at a higher level while others wait for it, or while it has a
 * lock (inheritance.h). With `overtake`, of several tasks that wait for the same lock or channel
 * the most urgent continues, and not the first to come.
 *
 * The presets of study 1 are in studies/study-priority.c.
 */

#include "aging_lists.h"
#include "inheritance.h"
#include "level_cpus.h"
#include "policy.h"

enum {
    PRIORITY_SLICE,
    PRIORITY_AGING_INTERVAL,
    PRIORITY_AGING_STEP,
    PRIORITY_EXEMPT_PIDS,
    PRIORITY_INHERIT,
    PRIORITY_OVERTAKE,
    PRIORITY_PREEMPTED_LAST,
};

enum { PRIORITY_LEVELS = PRIORITY_LOWEST + 1 };

static const struct tunable priority_tunables[] = {
    [PRIORITY_SLICE] = {"slice", "ticks of a turn among tasks of the same level", 1, 1, 1000},
    [PRIORITY_AGING_INTERVAL] = {"aging_interval", "ticks between raises of waiting tasks; 0: none",
                                 0, 50, 1000000},
    [PRIORITY_AGING_STEP] = {"aging_step", "levels of a raise", 1, 1, PRIORITY_LOWEST},
    [PRIORITY_EXEMPT_PIDS] = {"exempt_pids", "PIDs up to this do not age", 0, 2, 0x7fffffff},
    [PRIORITY_INHERIT] = {"inherit", INHERIT_MEANING, 0, INHERIT_NOTHING, INHERITANCES - 1},
    [PRIORITY_OVERTAKE] = {"overtake",
                           "1: the most urgent of the tasks that wait for a lock gets it next", 0,
                           0, 1},
    [PRIORITY_PREEMPTED_LAST] =
        {"preempted_last",
         "1: a preempted task goes to the end of its level, with a new time slice", 0, 0, 1},
};

static const struct preset priority_presets[] = {
    {"inheritance", "a task is as urgent as the tasks that wait for it", {{"inherit", 1}}},
    {"ceiling", "a task is as urgent as the ceilings of its locks", {{"inherit", 2}}},
};

/* A level's place in the order of service is its number. */
struct priority_task {
    struct aging_task aging;
    int32_t priority; /* its level when last queued, without raises; -1: none yet */
    uint32_t ticks;   /* used of its turn */
};

_Static_assert(sizeof(struct priority_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct aging_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(PRIORITY_LEVELS <= RANKS_MAX, "each level has a rank");

typedef struct priority_task SHARED_MEMORY priority_task_t;

POLICY_FUNCTION priority_task_t *priority_task_of(const task_t *task)
{
    return STATE_OF(task, struct priority_task);
}

/* ---- aging ---- */

/* Returns true if the task rises while it waits. */
POLICY_FUNCTION bool priority_ages(const scheduler_t *scheduler, const task_t *task)
{
    return task->pid > scheduler->tunable[PRIORITY_EXEMPT_PIDS];
}

/* Applies the raises since the last call. */
POLICY_RARE_FUNCTION void priority_raise(run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    aging_queue_t *state = aging_queue_of(queue);
    uint64_t interval = (uint64_t)scheduler->tunable[PRIORITY_AGING_INTERVAL] * scheduler->tick_ns;
    state->next_raise = (queue->now / interval + 1) * interval;
    uint64_t rise =
        aging_rise(queue, queue->now, interval, (uint64_t)scheduler->tunable[PRIORITY_AGING_STEP]);
    for (uint32_t level = LOOP_START(1); level < PRIORITY_LEVELS && rise > 0 && LOOP_GUARD; level++)
        level_lists_move(&state->aging, &state->counts, level,
                         level > rise ? level - (uint32_t)rise : 0, aging_waiting(state, level));
}

/* Updates the lists to the queue's time. Each hook that needs the lists calls it first. */
POLICY_FUNCTION void priority_age(run_queue_t *queue)
{
    if (queue->now >= aging_queue_of(queue)->next_raise)
        priority_raise(queue);
}

/* ---- one queue ---- */

POLICY_FUNCTION void priority_scheduler_init(scheduler_t *scheduler)
{
    scheduler->follows_waits = scheduler->tunable[PRIORITY_INHERIT] != 0;
    scheduler->orders_waiters = scheduler->tunable[PRIORITY_OVERTAKE] != 0;
}

POLICY_FUNCTION void priority_queue_init(run_queue_t *queue)
{
    aging_queue_init(queue, queue->scheduler->tunable[PRIORITY_AGING_INTERVAL] > 0);
}

POLICY_FUNCTION void priority_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    priority_task_t *state = priority_task_of(task);
    (void)parent;
    state->priority = -1;
    state->aging.ages = priority_ages(scheduler, task);
}

/* Sets the level of the task to be queued. Returns true if it resumes its turn, before the
 * others at its level. */
POLICY_FUNCTION bool priority_begin_wait(const scheduler_t *scheduler, const task_t *task,
                                         enum enqueue_reason reason)
{
    priority_task_t *state = priority_task_of(task);
    bool lost_cpu = reason == ENQUEUE_PREEMPTED || reason == ENQUEUE_EXPIRED;
    bool keeps_place = scheduler->tunable[PRIORITY_PREEMPTED_LAST] == 0;
    int32_t priority = inherited_priority(task);
    if (state->priority != priority)
        state->priority = priority;
    else if (lost_cpu && keeps_place && state->ticks < scheduler->tunable[PRIORITY_SLICE])
        return true;
    else if (reason == ENQUEUE_MOVED)
        return false;
    state->ticks = 0;
    state->aging.level = (uint32_t)state->priority;
    return false;
}

POLICY_FUNCTION void priority_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    priority_age(queue);
    bool goes_on = priority_begin_wait(queue->scheduler, task, reason);
    aging_add(aging_queue_of(queue), task, aging_task_of(task)->level, goes_on);
}

/* Takes out a task, in a queue whose lists are up to date. */
POLICY_FUNCTION void priority_take(run_queue_t *queue, task_t *task)
{
    aging_catch_up(aging_queue_of(queue), task);
    aging_remove(aging_queue_of(queue), task, aging_task_of(task)->level);
}

POLICY_FUNCTION void priority_dequeue(run_queue_t *queue, task_t *task)
{
    priority_age(queue);
    priority_take(queue, task);
}

POLICY_FUNCTION task_t *priority_steal(run_queue_t *queue, uint32_t cpu)
{
    if (!aging_first_on(aging_queue_of(queue), cpu))
        return NULL; /* other CPUs read the counts, and a raise would change them */
    priority_age(queue);
    task_t *task = aging_first_on(aging_queue_of(queue), cpu);
    priority_take(queue, task);
    return task;
}

POLICY_FUNCTION task_t *priority_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu; /* all tasks that wait here may run here */
    priority_age(queue);
    task_t *task = aging_first_on(aging_queue_of(queue), NO_CPU);
    if (task) {
        priority_take(queue, task);
        queue->remark = task->level;
        level_counts_of(queue)->running = (uint32_t)task->level;
    }
    return task;
}

POLICY_FUNCTION void priority_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    (void)task, (void)reason;
    level_counts_of(queue)->running = NO_RANK;
}

/* Updates the level of a running task; any other task gets its level when it is queued. */
POLICY_FUNCTION bool priority_waiters_changed(run_queue_t *queue, task_t *owner)
{
    priority_task_t *state = priority_task_of(owner);
    level_counts_t *counts = level_counts_of(queue);
    bool changed = inherit_priority(owner, queue->scheduler->tunable[PRIORITY_INHERIT]);
    if (!changed || owner != queue->current)
        return changed;
    state->priority = inherited_priority(owner);
    state->aging.level = (uint32_t)state->priority;
    owner->level = state->aging.level;
    counts->running = state->aging.level;
    return level_first(counts) < counts->running;
}

POLICY_FUNCTION bool priority_overtakes(run_queue_t *queue, const task_t *waiter,
                                        const task_t *chosen)
{
    (void)queue;
    return chosen && inherited_priority(waiter) < inherited_priority(chosen);
}

POLICY_FUNCTION enum tick_verdict priority_tick(run_queue_t *queue, task_t *task)
{
    priority_task_t *state = priority_task_of(task);
    level_counts_t *counts = level_counts_of(queue);
    priority_age(queue);
    state->ticks++;
    bool turn_is_over = state->ticks >= queue->scheduler->tunable[PRIORITY_SLICE];
    if (turn_is_over) /* balance() must see that the raise of this turn has ended, too */
        counts->running = (uint32_t)state->priority;
    bool higher_waits = level_first(counts) < counts->running;
    return turn_is_over || higher_waits ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t priority_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[PRIORITY_SLICE];
}

POLICY_FUNCTION bool priority_preempts(run_queue_t *queue, const task_t *task,
                                       const task_t *running)
{
    (void)queue;
    return aging_task_of(task)->level < aging_task_of(running)->level;
}

POLICY_FUNCTION uint64_t priority_level_now(const scheduler_t *scheduler, const task_t *task,
                                            uint64_t now)
{
    uint64_t interval = (uint64_t)scheduler->tunable[PRIORITY_AGING_INTERVAL] * scheduler->tick_ns;
    if (interval == 0 || !priority_ages(scheduler, task))
        return task->level;
    uint64_t raises = now / interval - task->queued_since / interval;
    uint64_t rise = raises * (uint64_t)scheduler->tunable[PRIORITY_AGING_STEP];
    return rise < task->level ? task->level - rise : 0;
}

POLICY_DEFINITION policy_priority = {
    .name = "priority",
    .meaning = "the highest priority runs, equals take turns, a waiting task's priority rises",
    .source = "Cobham 1954; study 1, 2025",
    .order = "The highest level at which a task waits is served; the task that came first is next.",
    .levels = "A task's level is its priority, and rises while it waits; level 0 is served first.",
    .remark = "level {}: the best at which a task waits",
    .level_order = LEVELS_LOWEST_FIRST,
    .remark_kind = REMARK_LEVEL,
    .priorities = PRIORITIES_PREEMPT,
    .cost = COST_CONSTANT,
    .reads = "priority",
    .tunables = priority_tunables,
    .tunable_count = sizeof(priority_tunables) / sizeof(priority_tunables[0]),
    .presets = priority_presets,
    .preset_count = sizeof(priority_presets) / sizeof(priority_presets[0]),
    .scheduler_init = priority_scheduler_init,
    .queue_init = priority_queue_init,
    .task_init = priority_task_init,
    .task_bytes = sizeof(struct priority_task),
    .enqueue = priority_enqueue,
    .dequeue = priority_dequeue,
    .pick = priority_pick,
    .tick = priority_tick,
    .time_slice = priority_time_slice,
    .stopped = priority_stopped,
    .waiters_changed = priority_waiters_changed,
    .overtakes = priority_overtakes,
    .preempts = priority_preempts,
    .place = place_by_level,
    .balance = balance_by_level,
    .steal = priority_steal,
    .level = priority_level_now,
};
