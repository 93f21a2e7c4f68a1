/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Priority scheduling of study 1, as built and as proposed: policies/priority.c plus its thesis's
 * rules and suggestions, each as a tunable.
 *
 * Preset `thesis`: a raise is permanent. Level 5 is served before level 0, and PIDs above 100 are
 * always at level 5. A process that has run for over 10,000 ticks is ended. A new process goes to
 * the CPU with the fewest waiting processes (the running one does not count) and stays there. A
 * higher task that wakes waits for the end of the tick. Where the study's code differs from its
 * text, this preset follows the text.
 *
 * Preset `passes`: the same as in the study's code, which produced its tables. It counts passes of
 * any CPU through the scheduler instead of ticks, and an idle CPU passes all the time. All
 * processes age, even running and sleeping ones and PIDs 1 and 2, which no preset ends. A process
 * that wakes below level 5 moves to level 0 permanently. Left out: its code ends processes by age,
 * not run time, and counts passes for each process, not together.
 *
 * Preset `proposed`: the default policy plus the proposals of the study's section 8.1.
 */

#include "policies/aging_lists.h"
#include "policies/level_cpus.h"
#include "policies/policy.h"
#include "policies/studies/passes.h"
#include "policies/studies/priority_quirks.h"
#include "policies/studies/priority_settings.h"

enum {
    STUDY_LEVELS = PRIORITY_LOWEST + 1,
    NO_LANE = STUDY_LEVELS,
};

struct study_priority_scheduler {
    int32_t lowest;     /* level */
    uint32_t fast_lane; /* the level that is served first, out of order */
};

struct study_priority_task {
    struct aging_task aging;
    uint32_t ticks;   /* of its turn, used */
    int32_t priority; /* the priority that determines its base; -1: none yet */
    int32_t base;     /* the level of its priority, less its permanent raises */
    bool moved;       /* it came from another CPU, at a tick of this one, and waits here */
    uint64_t left; /* on the aging clock: when it stopped waiting; for tasks that age then, too */
    struct behaviour behaviour;
};

_Static_assert(sizeof(struct study_priority_scheduler) <= POLICY_SCHEDULER_BYTES, "its state fits");
_Static_assert(sizeof(struct study_priority_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct passing_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(STUDY_LEVELS < RANKS_MAX, "each level has a rank, and so has the fast lane");

typedef struct study_priority_task SHARED_MEMORY study_priority_task_t;

POLICY_FUNCTION study_priority_task_t *study_priority_task_of(const task_t *task)
{
    return STATE_OF(task, struct study_priority_task);
}

/* ---- levels ---- */

/* Returns a level's place in the order of service; 0 comes first. */
POLICY_FUNCTION uint32_t study_priority_rank(const scheduler_t *scheduler, uint32_t level)
{
    bool first = level == STATE_OF(scheduler, struct study_priority_scheduler)->fast_lane;
    return first ? 0 : level + 1;
}

/* Returns true if the task rises while it waits. */
POLICY_FUNCTION bool study_priority_ages(const scheduler_t *scheduler, const task_t *task)
{
    return task->pid > scheduler->tunable[STUDY_EXEMPT_PIDS] &&
           !is_above_pid_limit(task, scheduler->tunable[STUDY_PID_LIMIT]);
}

/* Returns the level by the task's attributes. */
POLICY_FUNCTION int32_t study_priority_level(const scheduler_t *scheduler, const task_t *task)
{
    bool above_limit = is_above_pid_limit(task, scheduler->tunable[STUDY_PID_LIMIT]);
    int32_t priority = above_limit ? PRIORITY_DEFAULT : task->priority;
    return priority / (int32_t)scheduler->tunable[STUDY_LEVEL_WIDTH];
}

/* Returns the task's own level; it returns there after a turn. */
POLICY_FUNCTION uint32_t study_priority_base_level(const scheduler_t *scheduler, const task_t *task)
{
    const study_priority_task_t *state = study_priority_task_of(task);
    int32_t lowest = STATE_OF(scheduler, struct study_priority_scheduler)->lowest;
    int32_t level = state->base + state->behaviour.bias;
    return level < 0 ? 0 : (uint32_t)(level > lowest ? lowest : level);
}

POLICY_FUNCTION uint64_t study_priority_ticks(const scheduler_t *scheduler, uint32_t tunable)
{
    return (uint64_t)scheduler->tunable[tunable] * scheduler->tick_ns;
}

/* ---- the aging clock ---- */

POLICY_FUNCTION uint64_t study_priority_idle_passes(const scheduler_t *scheduler)
{
    return (uint64_t)scheduler->tunable[STUDY_IDLE_PASSES];
}

/* Returns nanoseconds, or passes of the scheduler. Passes are counted without locks: if two CPUs
 * pass at once, the clock may miss one. */
POLICY_FUNCTION uint64_t study_priority_clock(run_queue_t *queue)
{
    if (!queue->scheduler->tunable[STUDY_AGING_BY_PASSES])
        return queue->now;
    uint64_t passes =
        passes_of_all(queue->scheduler, queue->now, study_priority_idle_passes(queue->scheduler));
    uint64_t before = aging_queue_of(queue)->aged_until;
    return passes > before ? passes : before;
}

/* Returns the interval of the tunable, on that clock. */
POLICY_FUNCTION uint64_t study_priority_interval(const scheduler_t *scheduler, uint32_t tunable)
{
    if (scheduler->tunable[STUDY_AGING_BY_PASSES])
        return (uint64_t)scheduler->tunable[tunable];
    return study_priority_ticks(scheduler, tunable);
}

/* ---- aging ---- */

/* Applies a raise if its time has come. */
POLICY_RARE_FUNCTION void study_priority_raise(run_queue_t *queue, uint64_t clock)
{
    const scheduler_t *scheduler = queue->scheduler;
    aging_queue_t *state = aging_queue_of(queue);
    uint64_t interval = study_priority_interval(scheduler, STUDY_AGING_INTERVAL);
    uint64_t patience = study_priority_ticks(scheduler, STUDY_STALLED_AFTER);
    state->next_raise = (clock / interval + 1) * interval;
    if (patience > 0) {
        uint64_t shorter = study_priority_interval(scheduler, STUDY_STALLED_INTERVAL);
        uint64_t next = (clock / shorter + 1) * shorter;
        state->next_raise = next < state->next_raise ? next : state->next_raise;
        bool stalled =
            has_stalled(&state->aging, study_priority_rank(scheduler, 0), queue->now, patience);
        interval = stalled ? shorter : interval;
    }
    uint64_t rise =
        aging_rise(queue, clock, interval, (uint64_t)scheduler->tunable[STUDY_AGING_STEP]);
    for (uint32_t level = LOOP_START(1); level < STUDY_LEVELS && rise > 0 && LOOP_GUARD; level++) {
        uint32_t from = study_priority_rank(scheduler, level);
        uint32_t to = study_priority_rank(scheduler, level > rise ? level - (uint32_t)rise : 0);
        level_lists_move(&state->aging, &state->counts, from, to, aging_waiting(state, from));
    }
}

/* Updates the lists to the queue's time. Each hook that needs the lists calls it first. */
POLICY_FUNCTION void study_priority_age(run_queue_t *queue)
{
    uint64_t clock = study_priority_clock(queue);
    if (clock >= aging_queue_of(queue)->next_raise)
        study_priority_raise(queue, clock);
}

/* Applies the study's code to a task that starts to wait: it aged while it ran or slept, and
 * waking moves it to the top. */
POLICY_FUNCTION void study_priority_come_back(run_queue_t *queue, task_t *task,
                                              enum enqueue_reason reason)
{
    const scheduler_t *scheduler = queue->scheduler;
    study_priority_task_t *state = study_priority_task_of(task);
    uint64_t interval = study_priority_interval(scheduler, STUDY_AGING_INTERVAL);
    if (scheduler->tunable[STUDY_AGING_BY_PASSES] && state->aging.ages && interval > 0) {
        uint64_t raises = study_priority_clock(queue) / interval - state->left / interval;
        uint64_t rise = raises * (uint64_t)scheduler->tunable[STUDY_AGING_STEP];
        state->base = rise < (uint64_t)state->base ? state->base - (int32_t)rise : 0;
    }
    int32_t lane = PRIORITY_DEFAULT / (int32_t)scheduler->tunable[STUDY_LEVEL_WIDTH];
    if (reason == ENQUEUE_WOKEN && scheduler->tunable[STUDY_WAKING_FIRST] && state->base != lane)
        state->base = 0;
}

/* ---- one queue ---- */

POLICY_FUNCTION void study_priority_scheduler_init(scheduler_t *scheduler)
{
    struct study_priority_scheduler SHARED_MEMORY *state =
        STATE_OF(scheduler, struct study_priority_scheduler);
    int32_t width = (int32_t)scheduler->tunable[STUDY_LEVEL_WIDTH];
    bool lane = scheduler->tunable[STUDY_FAST_LANE] != 0;
    state->lowest = PRIORITY_LOWEST / width;
    state->fast_lane = lane ? (uint32_t)(PRIORITY_DEFAULT / width) : NO_LANE;
}

POLICY_FUNCTION void study_priority_queue_init(run_queue_t *queue)
{
    aging_queue_init(queue, queue->scheduler->tunable[STUDY_AGING_INTERVAL] > 0);
    passes_end_turn(queue);
}

POLICY_FUNCTION void study_priority_task_init(scheduler_t *scheduler, task_t *task,
                                              const task_t *parent)
{
    study_priority_task_t *state = study_priority_task_of(task);
    (void)parent;
    state->priority = -1;
    state->aging.ages = study_priority_ages(scheduler, task);
    state->behaviour.judged = task->run_time;
}

/* Sets the level of the task to be queued. Returns true if it resumes its turn, before the
 * others at its level. */
POLICY_FUNCTION bool study_priority_begin_wait(const scheduler_t *scheduler, const task_t *task,
                                               enum enqueue_reason reason)
{
    study_priority_task_t *state = study_priority_task_of(task);
    bool lost_cpu = reason == ENQUEUE_PREEMPTED || reason == ENQUEUE_EXPIRED;
    if (state->priority != task->priority) {
        state->priority = task->priority;
        state->base = study_priority_level(scheduler, task);
        state->behaviour.bias = 0;
    } else if (lost_cpu && state->ticks < scheduler->tunable[STUDY_SLICE]) {
        return true;
    } else if (reason == ENQUEUE_MOVED) {
        return false;
    }
    state->ticks = 0;
    state->aging.level = study_priority_base_level(scheduler, task);
    return false;
}

POLICY_FUNCTION void study_priority_enqueue(run_queue_t *queue, task_t *task,
                                            enum enqueue_reason reason)
{
    const scheduler_t *scheduler = queue->scheduler;
    study_priority_task_t *state = study_priority_task_of(task);
    study_priority_age(queue);
    if (reason == ENQUEUE_WOKEN) {
        state->behaviour.slept += queue->now - state->behaviour.blocked_at;
        behaviour_judge(&state->behaviour, task, study_priority_ticks(scheduler, STUDY_BEHAVIOUR));
    }
    if (state->priority >= 0)
        study_priority_come_back(queue, task, reason);
    bool goes_on = study_priority_begin_wait(scheduler, task, reason);
    aging_add(aging_queue_of(queue), task, study_priority_rank(scheduler, state->aging.level),
              goes_on);
}

/* Takes out a task, in a queue whose lists are up to date. */
POLICY_FUNCTION void study_priority_take(run_queue_t *queue, task_t *task)
{
    study_priority_task_t *state = study_priority_task_of(task);
    uint32_t rise = aging_catch_up(aging_queue_of(queue), task);
    if (rise > 0 && queue->scheduler->tunable[STUDY_AGING_KEEPS])
        state->base -= (int32_t)rise;
    state->left = study_priority_clock(queue);
    aging_remove(aging_queue_of(queue), task,
                 study_priority_rank(queue->scheduler, state->aging.level));
}

POLICY_FUNCTION void study_priority_dequeue(run_queue_t *queue, task_t *task)
{
    study_priority_age(queue);
    study_priority_take(queue, task);
}

POLICY_FUNCTION task_t *study_priority_steal(run_queue_t *queue, uint32_t cpu)
{
    if (!aging_first_on(aging_queue_of(queue), cpu))
        return NULL; /* other CPUs read the counts, and a raise would change them */
    study_priority_age(queue);
    task_t *task = aging_first_on(aging_queue_of(queue), cpu);
    study_priority_take(queue, task);
    study_priority_task_of(task)->moved = true;
    return task;
}

/* Looks at the lists of all levels in their order, as the study's rq_select() does. */
POLICY_RARE_FUNCTION task_t *study_priority_scan(const run_queue_t *queue)
{
    const aging_queue_t *state = aging_queue_of(queue);
    uint32_t ranks =
        (uint32_t)STATE_OF(queue->scheduler, struct study_priority_scheduler)->lowest + 2;
    task_t *task = NULL;
    for (uint32_t rank = (uint32_t)LOOP_START(0);
         !task && rank < ranks && rank < RANKS_MAX && LOOP_GUARD; rank++)
        task = aging_earlier(state->aging.list[rank].first, state->steady.list[rank].first);
    return task;
}

POLICY_FUNCTION task_t *study_priority_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu; /* all tasks that wait here may run here */
    study_priority_age(queue);
    task_t *task = queue->scheduler->tunable[STUDY_SCAN] == 0
                       ? aging_first_on(aging_queue_of(queue), NO_CPU)
                       : study_priority_scan(queue);
    if (task) {
        study_priority_task_t *state = study_priority_task_of(task);
        study_priority_take(queue, task);
        passes_begin_turn(queue, study_priority_idle_passes(queue->scheduler));
        state->moved = false;
        queue->remark = state->aging.level;
        level_counts_of(queue)->running = study_priority_rank(queue->scheduler, state->aging.level);
    }
    return task;
}

POLICY_FUNCTION void study_priority_stopped(run_queue_t *queue, task_t *task,
                                            enum stop_reason reason)
{
    level_counts_of(queue)->running = NO_RANK;
    passes_end_turn(queue);
    if (reason == STOP_BLOCKED)
        study_priority_task_of(task)->behaviour.blocked_at = queue->now;
}

POLICY_FUNCTION enum tick_verdict study_priority_tick(run_queue_t *queue, task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    study_priority_task_t *state = study_priority_task_of(task);
    level_counts_t *counts = level_counts_of(queue);
    if (must_end(task, study_priority_ticks(scheduler, STUDY_KILL_AFTER)))
        return TICK_KILL;
    study_priority_age(queue);
    behaviour_judge(&state->behaviour, task, study_priority_ticks(scheduler, STUDY_BEHAVIOUR));
    state->ticks++;
    bool turn_is_over = state->ticks >= scheduler->tunable[STUDY_SLICE];
    if (turn_is_over) /* balance() must see that the raise of this turn has ended, too */
        counts->running =
            study_priority_rank(scheduler, study_priority_base_level(scheduler, task));
    bool higher_waits = level_first(counts) < counts->running;
    return turn_is_over || higher_waits ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t study_priority_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[STUDY_SLICE];
}

/* A CPU takes tasks from others at its ticks. Such a task may preempt even where others may not
 * at once. */
POLICY_FUNCTION bool study_priority_preempts(run_queue_t *queue, const task_t *task,
                                             const task_t *running)
{
    const scheduler_t *scheduler = queue->scheduler;
    const study_priority_task_t *state = study_priority_task_of(task);
    return (scheduler->tunable[STUDY_PREEMPTION] || state->moved) &&
           study_priority_rank(scheduler, state->aging.level) <
               study_priority_rank(scheduler, aging_task_of(running)->level);
}

/* ---- several CPUs: see level_cpus.h ---- */

/* Returns true if tasks may move in this tick. */
POLICY_FUNCTION bool study_priority_moves(const scheduler_t *scheduler, uint32_t cpu)
{
    uint64_t interval = (uint64_t)scheduler->tunable[STUDY_BALANCING];
    uint64_t tick = scheduler->queue[cpu]->now / scheduler->tick_ns;
    return interval > 0 && tick % interval == 0;
}

POLICY_FUNCTION uint32_t study_priority_push(const scheduler_t *scheduler, uint32_t cpu)
{
    return study_priority_moves(scheduler, cpu) ? push_to_idle(scheduler, cpu) : NO_CPU;
}

POLICY_FUNCTION uint32_t study_priority_balance(const scheduler_t *scheduler, uint32_t cpu,
                                                bool idle)
{
    return study_priority_moves(scheduler, cpu) ? balance_by_level(scheduler, cpu, idle) : NO_CPU;
}

/* Returns the measure that places a new task permanently, by the study's rules: at the CPU where
 * it is least. It is the number of waiting tasks, or the sum of 10 - level over tasks that wait
 * or run. */
POLICY_FUNCTION uint64_t study_priority_crowd(const run_queue_t *queue)
{
    const level_counts_t *counts = level_counts_of(queue);
    uint64_t weight = 0;
    if (queue->scheduler->tunable[STUDY_PLACEMENT] == PLACE_FEWEST_WAITING)
        return queue->queued;
    for (uint32_t level = LOOP_START(0); level < STUDY_LEVELS && LOOP_GUARD; level++) {
        uint32_t rank = study_priority_rank(queue->scheduler, level);
        uint64_t tasks = counts->waiting[rank] + (counts->running == rank);
        weight += tasks * (PRIORITY_LOWEST - level);
    }
    return weight;
}

POLICY_FUNCTION uint32_t study_priority_place(const scheduler_t *scheduler, const task_t *task,
                                              enum enqueue_reason reason)
{
    if (scheduler->tunable[STUDY_PLACEMENT] == PLACE_BY_LEVEL)
        return place_by_level(scheduler, task, reason);
    if (reason != ENQUEUE_NEW)
        return home_cpu_of(scheduler, task);
    uint32_t best = NO_CPU;
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->queues && LOOP_GUARD; cpu++) {
        if (task_may_run_on(task, cpu) &&
            (best == NO_CPU || study_priority_crowd(scheduler->queue[cpu]) <
                                   study_priority_crowd(scheduler->queue[best])))
            best = cpu;
    }
    return best;
}

static const struct preset study_priority_presets[] = {
    {"thesis",
     "permanent raises, the fast lane, PIDs above 100 at level 5, no balancing (study 1)",
     {{"aging_keeps", 1},
      {"fast_lane", 1},
      {"pid_limit", 100},
      {"kill_after", 10000},
      {"preemption", 0},
      {"placement", PLACE_FEWEST_WAITING},
      {"balancing", 0}}},
    {"passes",
     "as in the study's code: tasks age by passes of the scheduler (study 1)",
     {{"aging_keeps", 1},
      {"aging_by_passes", 1},
      {"idle_passes", 1000},
      {"waking_first", 1},
      {"exempt_pids", 0},
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

/* Assumes the default interval: a trace does not show whether others have stalled, or how often
 * idle CPUs passed. */
POLICY_FUNCTION uint64_t study_priority_level_now(const scheduler_t *scheduler, const task_t *task,
                                                  uint64_t now)
{
    uint64_t interval = (uint64_t)scheduler->tunable[STUDY_AGING_INTERVAL] * scheduler->tick_ns;
    if (interval == 0 || !study_priority_ages(scheduler, task) ||
        scheduler->tunable[STUDY_AGING_BY_PASSES])
        return task->level;
    uint64_t raises = now / interval - task->queued_since / interval;
    uint64_t rise = raises * (uint64_t)scheduler->tunable[STUDY_AGING_STEP];
    return rise < task->level ? task->level - rise : 0;
}

POLICY_DEFINITION policy_study_priority = {
    .name = "priority",
    .meaning = "priorities as study 1 has them, and as it proposes them",
    .source = "Cobham 1954; study 1, 2025",
    .order = "The highest level at which a task waits is served; the task that came first is next.",
    .levels = "A task's level is its priority, and rises while it waits; level 0 is served first.",
    .remark = "level {}: the best at which a task waits",
    .level_order = LEVELS_LOWEST_FIRST,
    .remark_kind = REMARK_LEVEL,
    .reads = "priority",
    .tunables = study_priority_tunables,
    .tunable_count = STUDY_TUNABLES,
    .presets = study_priority_presets,
    .preset_count = sizeof(study_priority_presets) / sizeof(study_priority_presets[0]),
    .scheduler_init = study_priority_scheduler_init,
    .queue_init = study_priority_queue_init,
    .task_init = study_priority_task_init,
    .task_bytes = sizeof(struct study_priority_task),
    .enqueue = study_priority_enqueue,
    .dequeue = study_priority_dequeue,
    .pick = study_priority_pick,
    .tick = study_priority_tick,
    .time_slice = study_priority_time_slice,
    .stopped = study_priority_stopped,
    .preempts = study_priority_preempts,
    .place = study_priority_place,
    .push = study_priority_push,
    .balance = study_priority_balance,
    .steal = study_priority_steal,
    .level = study_priority_level_now,
};
