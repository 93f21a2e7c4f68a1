/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * The feedback queues of two studies: policies/mlfq.c without credit, and with the studies' rules
 * for the cost of running, the effect of blocking, and preemption.
 *
 * Preset `four-quanta` (study 3): a quantum is an allotment. Its section 4.1.3 counts the quantum
 * down at each tick, and checks it when the process returns to the scheduler; each level is
 * round-robin. A process returns at every tick, so that a slice is one tick: this is xv6's
 * behaviour and schedlab's reading, not a statement of the study. By the other reading, the preset
 * `whole-quanta`, a process returns only when its quantum ends. A slice then lasts the whole
 * quantum, and on the lowest level it has no end.
 *
 * In both, a task that blocks or yields before its quantum ends gets a new one. That is schedlab's
 * reading of section 3.1.3, which names "the time quantum applies across several rounds" as a
 * remedy that was not built. So tasks can game both, and the lowest level starves; tests show it.
 * The study finds the next task of a level by a scan of the process table; here it is the task that
 * has waited longest.
 *
 * Three remedies that section 3.1.3 names and did not build are tunables: `release` (a task that
 * blocks often rises), `starved_after` (a starved task rises to the top) and `lend` (a task is
 * served at the level of the tasks that wait for it).
 *
 * Preset `allotment-boost` (study 4): a process has a level and one counter of ticks. The counter
 * is compared with the allotment and (modulo the slice) ends its turns. This has three
 * consequences. The process that runs when a tick comes pays for the whole tick. A process that
 * wakes resumes its slice where it left it. Each slice divides its level's allotment, so none is
 * demoted within a slice. (With other values it would be demoted at once, and its turn would end.)
 * At each tick the highest ready level runs (3.2.1): a task that wakes waits for the tick, not for
 * the end of a lower task's slice. Among equals the running one continues until its slice ends
 * (3.2.2). The boost resets the counter, so it ends a turn.
 */

#include "policies/feedback_levels.h"
#include "policies/level_cpus.h"
#include "policies/policy.h"

enum {
    STUDY_RELEASE = FEEDBACK_TUNABLE_COUNT,
    STUDY_KEEP_SLICE,
    STUDY_CHARGE_TICKS,
    STUDY_PREEMPT,
    STUDY_INHERIT,
    STUDY_STARVED_AFTER,
    STUDY_LEND,
};

/* The effect of blocking or yielding. */
enum { RELEASE_KEEPS, RELEASE_FORGETS, RELEASE_RISES };

/* When a task of a lower level is preempted. */
enum { PREEMPT_AFTER_TURN, PREEMPT_AT_TICK, PREEMPT_AT_ONCE };

static const struct tunable study_mlfq_tunables[] = {
    FEEDBACK_TUNABLES,
    [STUDY_RELEASE] = {"release",
                       "blocking or yielding 0: changes nothing; 1: gives a new allotment; "
                       "2: and blocking raises a level",
                       RELEASE_KEEPS, RELEASE_KEEPS, RELEASE_RISES},
    [STUDY_KEEP_SLICE] = {"keep_slice", "1: a task that wakes goes on with the slice that it left",
                          0, 0, 1},
    [STUDY_CHARGE_TICKS] = {"charge_ticks",
                            "1: the task that runs at a tick pays for it; 0: for the time it ran",
                            0, 0, 1},
    [STUDY_PREEMPT] = {"preempt",
                       "a higher level takes over 0: when a turn ends; 1: at a tick; 2: at once",
                       PREEMPT_AFTER_TURN, PREEMPT_AT_ONCE, PREEMPT_AT_ONCE},
    [STUDY_INHERIT] = {"inherit",
                       "a child starts 0: at the top; 1: with its parent's level and allotment", 0,
                       1, 1},
    [STUDY_STARVED_AFTER] = {"starved_after",
                             "ticks of waiting that raise a task to the top; 0: none do", 0, 0,
                             100000},
    [STUDY_LEND] = {"lend", "1: a task is served at the level of the tasks that wait for it", 0, 0,
                    1},
};

static const struct preset study_mlfq_presets[] = {
    {"four-quanta",
     "quanta 1, 2, 4 and no limit, slices of a tick; no boost; giving up the CPU brings a new "
     "quantum (study 3)",
     {{"slice_3", 1},
      {"slice_2", 1},
      {"slice_1", 1},
      {"slice_0", 1},
      {"allotment_3", 1},
      {"allotment_2", 2},
      {"allotment_1", 4},
      {"boost", 0},
      {"release", RELEASE_FORGETS},
      {"charge_ticks", 1},
      {"preempt", PREEMPT_AT_TICK},
      {"inherit", 0}}},
    {"whole-quanta",
     "as `four-quanta`, but a slice lasts the whole quantum (study 3, the other reading)",
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
      {"inherit", 0}}},
    {"allotment-boost",
     "allotments 8, 16, 32 and no limit, slices 2, 4, 8, 32; all rise every 480 ticks (study 4)",
     {{"keep_slice", 1}, {"charge_ticks", 1}, {"preempt", PREEMPT_AT_TICK}, {"inherit", 0}}},
};

/* Times are in nanoseconds. */
struct study_mlfq_task {
    struct feedback_task feedback;
    uint64_t charged_run_time; /* run time that is already charged */
    uint64_t charged_at;
    bool moved; /* for a waiting task: it came from another CPU, at a tick of this one */
};

_Static_assert(sizeof(struct study_mlfq_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct feedback_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct study_mlfq_task SHARED_MEMORY study_mlfq_task_t;

POLICY_FUNCTION study_mlfq_task_t *study_mlfq_task_of(const task_t *task)
{
    return STATE_OF(task, struct study_mlfq_task);
}

/* Returns the task's serving level: its own, or that of a task that waits for it. */
POLICY_FUNCTION uint32_t study_mlfq_level(const run_queue_t *queue, const task_t *task)
{
    const feedback_task_t *state = feedback_task_of(task);
    bool boosted = state->epoch != feedback_queue_of(queue)->epoch;
    uint32_t base = boosted ? feedback_top(queue->scheduler) : state->base;
    uint32_t lent = (uint32_t)task->lent;
    return lent > base ? lent - 1 : base;
}

/* Charges the task for its run: until a tick, or until now when it stops. */
POLICY_FUNCTION void study_mlfq_charge(run_queue_t *queue, task_t *task, bool tick)
{
    const scheduler_t *scheduler = queue->scheduler;
    study_mlfq_task_t *state = study_mlfq_task_of(task);
    uint64_t used = task->run_time - state->charged_run_time;
    if (scheduler->tunable[STUDY_CHARGE_TICKS])
        used = tick ? scheduler->tick_ns : 0;
    feedback_pay(scheduler, &state->feedback, used, used);
    feedback_boost_queue(queue);
    feedback_boost_task(queue, task);
    state->charged_run_time = task->run_time;
    state->charged_at = queue->now;
    state->feedback.level = study_mlfq_level(queue, task);
    task->level = state->feedback.level;
}

/* Handles a task that blocked and now wakes, or that yields. */
POLICY_FUNCTION void study_mlfq_release(const run_queue_t *queue, feedback_task_t *state,
                                        bool blocked)
{
    int64_t rule = queue->scheduler->tunable[STUDY_RELEASE];
    if (rule != RELEASE_KEEPS)
        state->allotment_used = 0;
    if (rule == RELEASE_RISES && blocked && state->base < feedback_top(queue->scheduler))
        state->level = ++state->base;
}

POLICY_FUNCTION void study_mlfq_task_init(scheduler_t *scheduler, task_t *task,
                                          const task_t *parent)
{
    study_mlfq_task_t *state = study_mlfq_task_of(task);
    state->feedback.epoch = UINT64_MAX;
    state->charged_run_time = task->run_time;
    if (!parent || !scheduler->tunable[STUDY_INHERIT])
        return;
    const study_mlfq_task_t *other = study_mlfq_task_of(parent);
    state->feedback.epoch = other->feedback.epoch;
    state->feedback.level = state->feedback.base = other->feedback.base;
    state->feedback.allotment_used = other->feedback.allotment_used;
    state->charged_at = other->charged_at;
}

POLICY_FUNCTION void study_mlfq_enqueue(run_queue_t *queue, task_t *task,
                                        enum enqueue_reason reason)
{
    study_mlfq_task_t *state = study_mlfq_task_of(task);
    feedback_boost_queue(queue);
    bool inherits = !feedback_boost_task(queue, task) && reason == ENQUEUE_NEW;
    uint64_t since = queue->now - state->charged_at; /* its parent's run since then */
    if (inherits && !queue->scheduler->tunable[STUDY_CHARGE_TICKS])
        feedback_pay(queue->scheduler, &state->feedback, since, since);
    if (reason == ENQUEUE_WOKEN || reason == ENQUEUE_YIELDED)
        study_mlfq_release(queue, &state->feedback, reason == ENQUEUE_WOKEN);

    bool lost_cpu = reason == ENQUEUE_EXPIRED || reason == ENQUEUE_PREEMPTED;
    bool goes_on = lost_cpu && !state->feedback.turn_over;
    bool wakes_in_slice = reason == ENQUEUE_WOKEN && !state->feedback.turn_over &&
                          queue->scheduler->tunable[STUDY_KEEP_SLICE];
    if (!goes_on && !wakes_in_slice)
        state->feedback.slice_used = 0;
    state->feedback.level = study_mlfq_level(queue, task);
    feedback_add(queue, task, goes_on);
}

/* Raises the first task of each level that has waited too long. A level is first-in first-out
 * except for a preempted task. So no task behind the first waits longer than `starved_after`
 * plus a slice. */
POLICY_RARE_FUNCTION void study_mlfq_raise_starved(run_queue_t *queue)
{
    feedback_queue_t *state = feedback_queue_of(queue);
    uint64_t limit = feedback_ticks(queue->scheduler, STUDY_STARVED_AFTER);
    uint32_t top = feedback_top(queue->scheduler);
    for (uint32_t level = 0; level < top && LOOP_GUARD; level++) {
        task_t *task = state->lists.list[feedback_rank(level) % RANKS_MAX].first;
        if (!task || queue->now - task->queued_since < limit)
            continue;
        feedback_task_t *task_state = feedback_task_of(task);
        feedback_dequeue(queue, task);
        task_state->level = task_state->base = top;
        task_state->allotment_used = 0;
        feedback_add(queue, task, false);
    }
}

/* Updates the level of a running task; any other task gets its level when it is queued. */
POLICY_FUNCTION bool study_mlfq_waiters_changed(run_queue_t *queue, task_t *owner)
{
    level_counts_t *counts = level_counts_of(queue);
    uint32_t before = study_mlfq_level(queue, owner);
    owner->lent = 0;
    for (const task_t *waiter = owner->first_waiter; waiter && LOOP_GUARD;
         waiter = waiter->next_waiter) {
        uint64_t lent = study_mlfq_level(queue, waiter) + 1;
        owner->lent = lent > owner->lent ? lent : owner->lent;
    }
    uint32_t level = study_mlfq_level(queue, owner);
    if (level == before || owner != queue->current)
        return level != before;
    feedback_task_of(owner)->level = level;
    owner->level = level;
    counts->running = feedback_rank(level);
    return level_first(counts) < counts->running;
}

POLICY_FUNCTION void study_mlfq_scheduler_init(scheduler_t *scheduler)
{
    scheduler->follows_waits = scheduler->tunable[STUDY_LEND] != 0;
}

POLICY_FUNCTION task_t *study_mlfq_steal(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = feedback_steal(queue, cpu);
    if (task)
        study_mlfq_task_of(task)->moved = true;
    return task;
}

POLICY_FUNCTION task_t *study_mlfq_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu; /* all tasks that wait here may run here */
    task_t *task = feedback_take(queue, NO_CPU);
    if (task) {
        feedback_begin_turn(queue, task);
        study_mlfq_task_of(task)->moved = false;
        study_mlfq_task_of(task)->charged_at = queue->now;
    }
    return task;
}

POLICY_FUNCTION enum tick_verdict study_mlfq_tick(run_queue_t *queue, task_t *task)
{
    const feedback_task_t *state = feedback_task_of(task);
    level_counts_t *counts = level_counts_of(queue);
    study_mlfq_charge(queue, task, true);
    if (queue->scheduler->tunable[STUDY_STARVED_AFTER])
        study_mlfq_raise_starved(queue);
    counts->running = feedback_rank(state->level);
    bool higher_waits = level_first(counts) < counts->running;
    bool gives_way = higher_waits && queue->scheduler->tunable[STUDY_PREEMPT] != PREEMPT_AFTER_TURN;
    return state->turn_over || gives_way ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION void study_mlfq_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    (void)reason;
    study_mlfq_charge(queue, task, false);
    level_counts_of(queue)->running = NO_RANK;
}

/* A CPU takes tasks from others at its ticks. Such a task may preempt even where others may not
 * at once. */
POLICY_FUNCTION bool study_mlfq_preempts(run_queue_t *queue, const task_t *task,
                                         const task_t *running)
{
    int64_t rule = queue->scheduler->tunable[STUDY_PREEMPT];
    bool now =
        rule == PREEMPT_AT_ONCE || (rule == PREEMPT_AT_TICK && study_mlfq_task_of(task)->moved);
    return now && feedback_level(queue, task) > feedback_level(queue, running);
}

POLICY_DEFINITION policy_study_mlfq = {
    .name = "mlfq",
    .meaning = "the feedback queues of studies 3 and 4",
    .source = "Corbató 1962; Arpaci-Dusseau 2018",
    .order = "The highest level at which a task waits is served; the task that came first is next.",
    .levels = "A task that uses up its time sinks, and a boost lifts all; level 0 is served last.",
    .remark = "level {}: the best at which a task waits",
    .boost = "boost",
    .level_order = LEVELS_HIGHEST_FIRST,
    .remark_kind = REMARK_LEVEL,
    .reads = "",
    .tunables = study_mlfq_tunables,
    .tunable_count = sizeof(study_mlfq_tunables) / sizeof(study_mlfq_tunables[0]),
    .presets = study_mlfq_presets,
    .preset_count = sizeof(study_mlfq_presets) / sizeof(study_mlfq_presets[0]),
    .rounds = 2,
    .task_bytes = sizeof(struct study_mlfq_task),
    .enqueue = study_mlfq_enqueue,
    .dequeue = feedback_dequeue,
    .pick = study_mlfq_pick,
    .tick = study_mlfq_tick,
    .time_slice = feedback_time_slice,
    .scheduler_init = study_mlfq_scheduler_init,
    .queue_init = level_queue_init,
    .task_init = study_mlfq_task_init,
    .stopped = study_mlfq_stopped,
    .preempts = study_mlfq_preempts,
    .waiters_changed = study_mlfq_waiters_changed,
    .place = place_by_level,
    .balance = balance_by_level,
    .steal = study_mlfq_steal,
    .level = feedback_level_now,
};
