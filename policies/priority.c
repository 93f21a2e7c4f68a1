/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Priority scheduling: the task of the highest priority runs; those of equal
 * priority take turns. Level 0 is the highest. A task that waits rises by a level
 * at every multiple of the aging interval, so that none starves; once it has had
 * its turn it is back at its own level.
 *
 * Aging at a fixed cost: nothing is done to a task. Each level's list, as a whole,
 * is appended to that of the level above, and the queue counts the levels by which
 * its tasks have risen so far. A task notes that count when it is queued; the
 * difference tells its level when it leaves. Tasks that do not age wait in lists
 * of their own.
 *
 * On several CPUs, too, no task runs for longer than a tick while a higher one
 * waits: who wakes goes to the CPU that serves the lowest level, and at its ticks
 * each CPU looks for a task that is higher than its own.
 *
 * Preset `thesis` (study 1): a raise is permanent; level 5 is served before level
 * 0; PIDs above 100 are always at level 5; who has run for over 10,000 ticks is
 * ended; a new process goes to the CPU where the fewest wait (who runs there does
 * not count) and stays there; and a higher one that wakes must wait for the end of
 * the tick. Where the study's code differs from its text, this follows the text: the
 * code counts passes of the scheduler instead of ticks; all age, those that run or
 * sleep and PIDs 1 and 2, too; processes are ended by age, not run time; and who
 * wakes, unless at level 5, is at level 0 from then on.
 *
 * Preset `proposed`: the default with what the study proposes in section 8.1.
 */

#include "level_cpus.h"
#include "level_lists.h"
#include "policy.h"
#include "priority_quirks.h"

enum {
    PRIORITY_SLICE,
    PRIORITY_AGING_INTERVAL,
    PRIORITY_AGING_STEP,
    PRIORITY_AGING_KEEPS,
    PRIORITY_STALLED_AFTER,
    PRIORITY_STALLED_INTERVAL,
    PRIORITY_EXEMPT_PIDS,
    PRIORITY_LEVEL_WIDTH,
    PRIORITY_BEHAVIOUR,
    PRIORITY_FAST_LANE,
    PRIORITY_PID_LIMIT,
    PRIORITY_KILL_AFTER,
    PRIORITY_PREEMPTION,
    PRIORITY_PLACEMENT,
    PRIORITY_BALANCING,
    PRIORITY_TUNABLES,
};

enum { PLACE_BY_LEVEL, PLACE_FEWEST_WAITING, PLACE_LEAST_WEIGHT };

enum {
    LEVELS = PRIORITY_LOWEST + 1,
    NO_LANE = LEVELS,
};

struct priority_scheduler {
    int32_t lowest;     /* level */
    uint32_t fast_lane; /* the level that is served first, out of its order */
};

struct priority_task {
    uint64_t order;   /* of arrival in its queue */
    uint64_t raised;  /* the queue's count when `level` was right */
    uint32_t level;   /* when its wait began; of its turn, if it runs */
    uint32_t ticks;   /* of its turn, used */
    int32_t priority; /* the one that its base comes from; -1: none yet */
    int32_t base;     /* the level of its priority, less the raises that it keeps */
    bool ages;
    bool moved; /* it came from another CPU, at a tick of this one, and waits here */
    struct behaviour behaviour;
};

struct priority_queue {
    struct level_counts counts;         /* by rank: see priority_rank() */
    struct level_lists aging;           /* those that wait and age, */
    struct level_lists steady;          /* those that wait and do not, */
    uint32_t steady_waiting[RANKS_MAX]; /* and how many they are */
    uint64_t arrivals;
    uint64_t raised;     /* levels by which those that wait have risen so far */
    uint64_t next_raise; /* nanoseconds; nothing is due before */
    uint64_t aged_until;
};

_Static_assert(sizeof(struct priority_scheduler) <= POLICY_SCHEDULER_BYTES, "its state fits");
_Static_assert(sizeof(struct priority_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct priority_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(LEVELS < RANKS_MAX, "each level has a rank, and so has the fast lane");

typedef struct priority_task SHARED_MEMORY priority_task_t;
typedef struct priority_queue SHARED_MEMORY priority_queue_t;

POLICY_FUNCTION priority_task_t *priority_task_of(const task_t *task)
{
    return STATE_OF(task, struct priority_task);
}

POLICY_FUNCTION priority_queue_t *priority_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct priority_queue);
}

/* ---- levels ---- */

/* A level's place in the order of service; 0 comes first. */
POLICY_FUNCTION uint32_t priority_rank(const scheduler_t *scheduler, uint32_t level)
{
    bool first = level == STATE_OF(scheduler, struct priority_scheduler)->fast_lane;
    return first ? 0 : level + 1;
}

POLICY_FUNCTION bool priority_is_exempt(const scheduler_t *scheduler, const task_t *task)
{
    return task->pid <= scheduler->tunable[PRIORITY_EXEMPT_PIDS];
}

/* Does the task rise while it waits? */
POLICY_FUNCTION bool priority_ages(const scheduler_t *scheduler, const task_t *task)
{
    return !priority_is_exempt(scheduler, task) &&
           !is_above_pid_limit(task, scheduler->tunable[PRIORITY_PID_LIMIT]);
}

/* As the task's attributes say. */
POLICY_FUNCTION int32_t priority_level(const scheduler_t *scheduler, const task_t *task)
{
    bool above_limit = is_above_pid_limit(task, scheduler->tunable[PRIORITY_PID_LIMIT]);
    int32_t priority = above_limit ? PRIORITY_DEFAULT : task->priority;
    return priority / (int32_t)scheduler->tunable[PRIORITY_LEVEL_WIDTH];
}

/* The task's own level, to which it returns after a turn. */
POLICY_FUNCTION uint32_t priority_own_level(const scheduler_t *scheduler, const task_t *task)
{
    const priority_task_t *own = priority_task_of(task);
    int32_t lowest = STATE_OF(scheduler, struct priority_scheduler)->lowest;
    int32_t level = own->base + own->behaviour.bias;
    return level < 0 ? 0 : (uint32_t)(level > lowest ? lowest : level);
}

POLICY_FUNCTION uint64_t priority_ticks(const scheduler_t *scheduler, uint32_t tunable)
{
    return (uint64_t)scheduler->tunable[tunable] * scheduler->tick_ns;
}

/* ---- aging ---- */

/* A raise may be due: one for each multiple of the interval that has come since the last look. */
POLICY_RARE_FUNCTION void priority_raise(run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    priority_queue_t *state = priority_queue_of(queue);
    uint64_t interval = priority_ticks(scheduler, PRIORITY_AGING_INTERVAL);
    uint64_t patience = priority_ticks(scheduler, PRIORITY_STALLED_AFTER);
    state->next_raise = (queue->now / interval + 1) * interval;
    if (patience > 0) {
        uint64_t shorter = priority_ticks(scheduler, PRIORITY_STALLED_INTERVAL);
        uint64_t next = (queue->now / shorter + 1) * shorter;
        state->next_raise = next < state->next_raise ? next : state->next_raise;
        bool stalled =
            has_stalled(&state->aging, priority_rank(scheduler, 0), queue->now, patience);
        interval = stalled ? shorter : interval;
    }
    uint64_t raises = queue->now / interval - state->aged_until / interval;
    uint64_t rise = raises * (uint64_t)scheduler->tunable[PRIORITY_AGING_STEP];
    state->aged_until = queue->now;
    state->raised += rise;
    for (uint32_t level = LOOP_START(1); level < LEVELS && rise > 0 && LOOP_GUARD; level++) {
        uint32_t from = priority_rank(scheduler, level);
        uint32_t to = priority_rank(scheduler, level > rise ? level - (uint32_t)rise : 0);
        level_lists_move(&state->aging, &state->counts, from, to,
                         state->counts.waiting[from] - state->steady_waiting[from]);
    }
}

/* Brings the lists up to the queue's time: first of all in each hook that needs them. */
POLICY_FUNCTION void priority_age(run_queue_t *queue)
{
    if (queue->now >= priority_queue_of(queue)->next_raise)
        priority_raise(queue);
}

/* Gives the task, which is about to leave the queue, the raises that came while it waited. */
POLICY_FUNCTION void priority_catch_up(const run_queue_t *queue, task_t *task)
{
    priority_task_t *own = priority_task_of(task);
    uint64_t rise = priority_queue_of(queue)->raised - own->raised;
    if (!own->ages || rise == 0)
        return;
    if (rise > own->level)
        rise = own->level;
    own->level -= (uint32_t)rise;
    if (queue->scheduler->tunable[PRIORITY_AGING_KEEPS])
        own->base -= (int32_t)rise;
    task->level = own->level;
}

/* ---- one queue ---- */

POLICY_FUNCTION void priority_scheduler_init(scheduler_t *scheduler)
{
    struct priority_scheduler SHARED_MEMORY *state = STATE_OF(scheduler, struct priority_scheduler);
    int32_t width = (int32_t)scheduler->tunable[PRIORITY_LEVEL_WIDTH];
    bool lane = scheduler->tunable[PRIORITY_FAST_LANE] != 0;
    state->lowest = PRIORITY_LOWEST / width;
    state->fast_lane = lane ? (uint32_t)(PRIORITY_DEFAULT / width) : NO_LANE;
}

POLICY_FUNCTION void priority_queue_init(run_queue_t *queue)
{
    bool ages = queue->scheduler->tunable[PRIORITY_AGING_INTERVAL] > 0;
    level_queue_init(queue);
    priority_queue_of(queue)->next_raise = ages ? 0 : UINT64_MAX;
}

POLICY_FUNCTION void priority_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    priority_task_t *own = priority_task_of(task);
    (void)parent;
    own->priority = -1;
    own->ages = priority_ages(scheduler, task);
    own->behaviour.judged = task->run_time;
}

/* Sets the level at which the task is queued. True: it goes on with its turn, before the others
 * at its level. */
POLICY_FUNCTION bool priority_begin_wait(const scheduler_t *scheduler, const task_t *task,
                                         enum enqueue_reason reason)
{
    priority_task_t *own = priority_task_of(task);
    bool lost_cpu = reason == ENQUEUE_PREEMPTED || reason == ENQUEUE_EXPIRED;
    if (own->priority != task->priority) {
        own->priority = task->priority;
        own->base = priority_level(scheduler, task);
        own->behaviour.bias = 0;
    } else if (lost_cpu && own->ticks < scheduler->tunable[PRIORITY_SLICE]) {
        return true;
    } else if (reason == ENQUEUE_MOVED) {
        return false;
    }
    own->ticks = 0;
    own->level = priority_own_level(scheduler, task);
    return false;
}

POLICY_FUNCTION void priority_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    const scheduler_t *scheduler = queue->scheduler;
    priority_queue_t *state = priority_queue_of(queue);
    priority_task_t *own = priority_task_of(task);
    priority_age(queue);
    if (reason == ENQUEUE_WOKEN) {
        own->behaviour.slept += queue->now - own->behaviour.blocked_at;
        behaviour_judge(&own->behaviour, task, priority_ticks(scheduler, PRIORITY_BEHAVIOUR));
    }
    bool goes_on = priority_begin_wait(scheduler, task, reason);
    if (!goes_on)
        own->order = state->arrivals++;
    own->raised = state->raised;
    task->level = own->level;
    uint32_t rank = priority_rank(scheduler, own->level);
    level_lists_add(own->ages ? &state->aging : &state->steady, &state->counts, task, rank,
                    goes_on);
    state->steady_waiting[rank] += !own->ages;
}

/* Takes out a task, in a queue that is up to its time. */
POLICY_FUNCTION void priority_take(run_queue_t *queue, task_t *task)
{
    priority_queue_t *state = priority_queue_of(queue);
    const priority_task_t *own = priority_task_of(task);
    priority_catch_up(queue, task);
    uint32_t rank = priority_rank(queue->scheduler, own->level);
    level_lists_remove(own->ages ? &state->aging : &state->steady, &state->counts, task, rank);
    state->steady_waiting[rank] -= !own->ages;
}

POLICY_FUNCTION void priority_dequeue(run_queue_t *queue, task_t *task)
{
    priority_age(queue);
    priority_take(queue, task);
}

/* Who is first, of those that age and those that do not; null: nobody waits. */
POLICY_FUNCTION task_t *priority_first(const run_queue_t *queue)
{
    const priority_queue_t *state = priority_queue_of(queue);
    uint32_t rank = level_first(&state->counts);
    if (rank == NO_RANK)
        return NULL;
    task_t *aging = state->aging.list[rank].first;
    task_t *steady = state->steady.list[rank].first;
    if (!aging || !steady)
        return aging ? aging : steady;
    return priority_task_of(aging)->order < priority_task_of(steady)->order ? aging : steady;
}

POLICY_FUNCTION task_t *priority_steal(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    priority_age(queue);
    task_t *task = priority_first(queue);
    if (task) {
        priority_take(queue, task);
        priority_task_of(task)->moved = true;
    }
    return task;
}

POLICY_FUNCTION task_t *priority_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = priority_steal(queue, cpu);
    if (task) {
        priority_task_t *own = priority_task_of(task);
        own->moved = false;
        queue->remark = own->level;
        level_counts_of(queue)->running = priority_rank(queue->scheduler, own->level);
    }
    return task;
}

POLICY_FUNCTION void priority_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    level_counts_of(queue)->running = NO_RANK;
    if (reason == STOP_BLOCKED)
        priority_task_of(task)->behaviour.blocked_at = queue->now;
}

POLICY_FUNCTION enum tick_verdict priority_tick(run_queue_t *queue, task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    priority_task_t *own = priority_task_of(task);
    level_counts_t *counts = level_counts_of(queue);
    bool has_run_enough = has_run_for_longer(task, priority_ticks(scheduler, PRIORITY_KILL_AFTER));
    if (has_run_enough && !priority_is_exempt(scheduler, task))
        return TICK_KILL;
    priority_age(queue);
    behaviour_judge(&own->behaviour, task, priority_ticks(scheduler, PRIORITY_BEHAVIOUR));
    own->ticks++;
    bool turn_is_over = own->ticks >= scheduler->tunable[PRIORITY_SLICE];
    if (turn_is_over) /* balance() must know that the raise of this turn is over, too */
        counts->running = priority_rank(scheduler, priority_own_level(scheduler, task));
    bool higher_waits = level_first(counts) < counts->running;
    return turn_is_over || higher_waits ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t priority_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[PRIORITY_SLICE];
}

/* A CPU takes tasks from others at its ticks: for one of those it is time even if not at once. */
POLICY_FUNCTION bool priority_preempts(run_queue_t *queue, const task_t *task,
                                       const task_t *running)
{
    const scheduler_t *scheduler = queue->scheduler;
    const priority_task_t *own = priority_task_of(task);
    return (scheduler->tunable[PRIORITY_PREEMPTION] || own->moved) &&
           priority_rank(scheduler, own->level) <
               priority_rank(scheduler, priority_task_of(running)->level);
}

/* As it rises at the usual interval: whether others have stalled, no trace tells. */
POLICY_FUNCTION uint64_t priority_level_now(const scheduler_t *scheduler, const task_t *task,
                                            uint64_t now)
{
    uint64_t interval = priority_ticks(scheduler, PRIORITY_AGING_INTERVAL);
    if (interval == 0 || !priority_ages(scheduler, task))
        return task->level;
    uint64_t raises = now / interval - task->queued_since / interval;
    uint64_t rise = raises * (uint64_t)scheduler->tunable[PRIORITY_AGING_STEP];
    return rise < task->level ? task->level - rise : 0;
}

/* ---- several CPUs: see level_cpus.h ---- */

POLICY_FUNCTION uint32_t priority_push(const scheduler_t *scheduler, uint32_t cpu)
{
    return scheduler->tunable[PRIORITY_BALANCING] ? push_to_idle(scheduler, cpu) : NO_CPU;
}

POLICY_FUNCTION uint32_t priority_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    return scheduler->tunable[PRIORITY_BALANCING] ? balance_by_level(scheduler, cpu, idle) : NO_CPU;
}

/* By the study's rules a new task goes where this is least, and stays there: how many wait, or the
 * sum of 10 - level of those that wait or run. */
POLICY_FUNCTION uint64_t priority_crowd(const run_queue_t *queue)
{
    const level_counts_t *counts = level_counts_of(queue);
    uint64_t weight = 0;
    if (queue->scheduler->tunable[PRIORITY_PLACEMENT] == PLACE_FEWEST_WAITING)
        return queue->queued;
    for (uint32_t level = LOOP_START(0); level < LEVELS && LOOP_GUARD; level++) {
        uint32_t rank = priority_rank(queue->scheduler, level);
        uint64_t tasks = counts->waiting[rank] + (counts->running == rank);
        weight += tasks * (PRIORITY_LOWEST - level);
    }
    return weight;
}

POLICY_FUNCTION uint32_t priority_place(const scheduler_t *scheduler, const task_t *task,
                                        enum enqueue_reason reason)
{
    if (scheduler->tunable[PRIORITY_PLACEMENT] == PLACE_BY_LEVEL)
        return place_by_level(scheduler, task, reason);
    if (reason != ENQUEUE_NEW)
        return task->cpu;
    uint32_t best = 0;
    for (uint32_t cpu = LOOP_START(1); cpu < scheduler->queues && LOOP_GUARD; cpu++) {
        if (priority_crowd(scheduler->queue[cpu]) < priority_crowd(scheduler->queue[best]))
            best = cpu;
    }
    return best;
}

/* ---- what can be set ---- */

enum { PID_MAX = 0x7fffffff };

static const struct tunable priority_tunables[] = {
    [PRIORITY_SLICE] = {"slice", "ticks of a turn among tasks of the same level", 1, 1, 1000},
    [PRIORITY_AGING_INTERVAL] = {"aging_interval",
                                 "ticks between raises of those that wait; 0: none", 0, 50,
                                 1000000},
    [PRIORITY_AGING_STEP] = {"aging_step", "levels of a raise", 1, 1, PRIORITY_LOWEST},
    [PRIORITY_AGING_KEEPS] = {"aging_keeps", "a raise is 0: for one turn; 1: until priority is set",
                              0, 0, 1},
    [PRIORITY_STALLED_AFTER] =
        {"stalled_after",
         "ticks; while the first in some level's line has waited for longer, "
         "its CPU's tasks rise every stalled_interval; 0: off",
         0, 0, 1000000},
    [PRIORITY_STALLED_INTERVAL] = {"stalled_interval", "ticks between raises then", 1, 25, 1000000},
    [PRIORITY_EXEMPT_PIDS] = {"exempt_pids", "PIDs up to this neither age nor are ended", 0, 2,
                              PID_MAX},
    [PRIORITY_LEVEL_WIDTH] = {"level_width", "priorities at one level; 3: 0-2, 3-5, 6-8, 9-10", 1,
                              1, PRIORITY_LOWEST + 1},
    [PRIORITY_BEHAVIOUR] = {"behaviour",
                            "ticks run or slept, after which who hardly slept sinks by a level and "
                            "who mostly slept rises, by two levels at most; 0: off",
                            0, 0, 1000000},
    [PRIORITY_FAST_LANE] = {"fast_lane", "1: priority 5 is served before priority 0", 0, 0, 1},
    [PRIORITY_PID_LIMIT] = {"pid_limit", "PIDs above this have priority 5 and do not age; 0: none",
                            0, 0, PID_MAX},
    [PRIORITY_KILL_AFTER] = {"kill_after", "ticks of run time after which a task is ended; 0: none",
                             0, 0, 1000000000},
    [PRIORITY_PREEMPTION] = {"preemption", "a higher task takes over 0: at a tick; 1: at once", 0,
                             1, 1},
    [PRIORITY_PLACEMENT] = {"placement",
                            "0: on the CPU that serves the lowest level; or, when forked, where "
                            "1: the fewest wait; 2: the sum of 10 - level is least",
                            PLACE_BY_LEVEL, PLACE_BY_LEVEL, PLACE_LEAST_WEIGHT},
    [PRIORITY_BALANCING] = {"balancing", "1: tasks move between CPUs; 0: they stay", 0, 1, 1},
};

_Static_assert(sizeof(priority_tunables) / sizeof(priority_tunables[0]) == PRIORITY_TUNABLES,
               "all are there");

static const struct preset priority_presets[] = {
    {"thesis",
     "permanent raises, the fast lane, PIDs above 100 at level 5, no balancing (study 1)",
     {{"aging_keeps", 1},
      {"fast_lane", 1},
      {"pid_limit", 100},
      {"kill_after", 10000},
      {"preemption", 0},
      {"placement", PLACE_FEWEST_WAITING},
      {"balancing", 0}}},
    {"proposed",
     "dynamic aging, four levels, priority by behaviour and placement by weight (study 1, 8.1)",
     {{"stalled_after", 100},
      {"level_width", 3},
      {"behaviour", 100},
      {"placement", PLACE_LEAST_WEIGHT}}},
};

POLICY_DEFINITION policy_priority = {
    .name = "priority",
    .meaning = "the highest priority runs, equals take turns, who waits rises",
    .source = "Cobham 1954; study 1, 2025",
    .order = "The highest level at which a task waits is served; the task that came first is next.",
    .levels = "A task's level is its priority, and rises while it waits; level 0 is served first.",
    .remark = "level {}: the best at which a task waits",
    .level_order = LEVELS_LOWEST_FIRST,
    .remark_kind = REMARK_LEVEL,
    .cost = COST_CONSTANT,
    .tunables = priority_tunables,
    .tunable_count = PRIORITY_TUNABLES,
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
    .preempts = priority_preempts,
    .place = priority_place,
    .push = priority_push,
    .balance = priority_balance,
    .steal = priority_steal,
    .level = priority_level_now,
};
