/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * The interactivity score of ULE (Roberson 2003), FreeBSD's scheduler: it compares how long a task
 * recently slept with how long it ran.
 *
 *     score = 50 run / sleep           if it slept longer than it ran
 *           = 100 - 50 sleep / run     else
 *
 * A task is interactive if its score plus its nice value is less than `threshold`. An interactive
 * task waits in the current queue, ordered by score, before all others, and has short turns. The
 * others wait in the next queue, and run when the current one is empty: then the two queues swap.
 * So each of them has one turn in a round, regardless of its score.
 *
 * At most `history_ms` are remembered. Beyond that, both times are scaled down to four fifths of
 * it. A child starts with its parent's times, scaled down to a tenth, so that its own behaviour
 * soon dominates.
 *
 * The paper prints the second line as 50 / (run / sleep) + 50, which would be least for a task that
 * never sleeps. The line above joins the first at 50, and is 100 for such a task. That an
 * interactive task preempts another at once is schedlab's choice. Left out: turns by nice value,
 * and ULE's rules for several CPUs; the host's defaults apply.
 */

#include "level_lists.h"
#include "policy.h"

enum { ULE_SLICE, ULE_SHORT_SLICE, ULE_THRESHOLD, ULE_HISTORY };

static const struct tunable ule_tunables[] = {
    [ULE_SLICE] = {"slice_us", "microseconds of a turn", 100, 100000, 10000000},
    [ULE_SHORT_SLICE] = {"short_slice_us", "microseconds of a turn of an interactive task", 100,
                         10000, 10000000},
    [ULE_THRESHOLD] = {"threshold", "the score below which a task is interactive", 0, 30, 100},
    [ULE_HISTORY] = {"history_ms", "milliseconds of run time and sleep that are remembered", 10,
                     5000, 1000000},
};

#define ULE_RANKS (RANKS_MAX / 2) /* of interactive tasks; the others have the same number */

struct ule_task {
    uint64_t run;     /* remembered run time, in nanoseconds */
    uint64_t sleep;   /* remembered sleep, in nanoseconds */
    uint64_t charged; /* run_time that `run` already includes */
    uint64_t slept;   /* when it blocked */
    uint64_t turn;    /* its run_time when its turn began */
    uint32_t array;   /* where it waits */
    uint32_t rank;
};

struct ule_array {
    struct level_counts counts;
    struct level_lists lists;
};

struct ule_queue {
    struct ule_array array[2];
    uint32_t current;
};

_Static_assert(sizeof(struct ule_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct ule_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct ule_task SHARED_MEMORY ule_task_t;
typedef struct ule_queue SHARED_MEMORY ule_queue_t;
typedef struct ule_array SHARED_MEMORY ule_array_t;

POLICY_FUNCTION ule_task_t *ule_task_of(const task_t *task)
{
    return STATE_OF(task, struct ule_task);
}

/* ---- the score ---- */

/* Scales the remembered times down if they exceed `most` nanoseconds. */
POLICY_FUNCTION void ule_forget(ule_task_t *state, uint64_t most)
{
    uint64_t remaining = most / 5 * 4;
    uint64_t all = state->run + state->sleep;
    if (all <= most)
        return;
    uint64_t total = all >> 48 ? all >> 20 : all; /* products stay within 64 bits */
    uint64_t part = all >> 48 ? state->run >> 20 : state->run;
    state->run = remaining / 1000 * (part * 1000 / total);
    state->sleep = remaining - state->run;
}

POLICY_FUNCTION uint64_t ule_history(const scheduler_t *scheduler)
{
    return (uint64_t)scheduler->tunable[ULE_HISTORY] * 1000000;
}

POLICY_FUNCTION void ule_charge(const scheduler_t *scheduler, const task_t *task)
{
    ule_task_t *state = ule_task_of(task);
    state->run += task->run_time - state->charged;
    state->charged = task->run_time;
    ule_forget(state, ule_history(scheduler));
}

/* Returns 0 to 100, plus the nice value. */
POLICY_FUNCTION int64_t ule_score(const task_t *task)
{
    const ule_task_t *state = ule_task_of(task);
    uint64_t score = 0;
    if (state->sleep > state->run)
        score = 50 * state->run / state->sleep;
    else if (state->run > 0)
        score = 100 - 50 * state->sleep / state->run;
    return (int64_t)score + task->nice;
}

POLICY_FUNCTION bool ule_interactive(const scheduler_t *scheduler, const task_t *task)
{
    return ule_score(task) < scheduler->tunable[ULE_THRESHOLD];
}

POLICY_FUNCTION uint64_t ule_slice(const scheduler_t *scheduler, const task_t *task)
{
    bool quick = ule_interactive(scheduler, task);
    return (uint64_t)scheduler->tunable[quick ? ULE_SHORT_SLICE : ULE_SLICE] * 1000;
}

/* Interactive tasks have the first ranks. */
POLICY_FUNCTION uint32_t ule_rank(const scheduler_t *scheduler, const task_t *task)
{
    int64_t threshold = scheduler->tunable[ULE_THRESHOLD];
    int64_t score = ule_score(task);
    score = score < 0 ? 0 : score;
    if (ule_interactive(scheduler, task))
        return (uint32_t)(score * ULE_RANKS / (threshold > 0 ? threshold : 1));
    int64_t above = (score - threshold) * ULE_RANKS / (120 - threshold);
    return ULE_RANKS + (uint32_t)(above < 0 ? 0 : above);
}

/* ---- hooks ---- */

POLICY_FUNCTION void ule_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    ule_task_t *state = ule_task_of(task);
    state->charged = task->run_time;
    state->turn = task->run_time;
    if (!parent)
        return;
    state->run = ule_task_of(parent)->run;
    state->sleep = ule_task_of(parent)->sleep;
    ule_forget(state, ule_history(scheduler) / 10);
}

POLICY_FUNCTION void ule_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    ule_queue_t *all = STATE_OF(queue, struct ule_queue);
    ule_task_t *state = ule_task_of(task);
    bool goes_on = reason == ENQUEUE_PREEMPTED;
    if (reason == ENQUEUE_WOKEN && queue->now > state->slept) {
        state->sleep += queue->now - state->slept;
        ule_forget(state, ule_history(queue->scheduler));
    }
    if (!goes_on)
        state->turn = task->run_time;
    bool interactive = ule_interactive(queue->scheduler, task);
    task->level = !interactive;
    state->rank = ule_rank(queue->scheduler, task) & (RANKS_MAX - 1);
    state->array = (all->current + (interactive || goes_on ? 0 : 1)) & 1;
    ule_array_t *array = &all->array[state->array];
    level_lists_add(&array->lists, &array->counts, task, state->rank, goes_on);
}

POLICY_FUNCTION void ule_dequeue(run_queue_t *queue, task_t *task)
{
    ule_array_t *array = &STATE_OF(queue, struct ule_queue)->array[ule_task_of(task)->array & 1];
    level_lists_remove(&array->lists, &array->counts, task, ule_task_of(task)->rank);
}

POLICY_FUNCTION task_t *ule_pick(run_queue_t *queue, uint32_t cpu)
{
    ule_queue_t *all = STATE_OF(queue, struct ule_queue);
    bool over = level_first(&all->array[all->current & 1].counts) == NO_RANK;
    ule_array_t *array = &all->array[(all->current + over) & 1];
    task_t *task = level_lists_take_first_on(&array->lists, &array->counts, cpu);
    array = &all->array[(all->current + 1) & 1];
    if (!task && !over) /* the tasks of this round may not run on the CPU */
        task = level_lists_take_first_on(&array->lists, &array->counts, cpu);
    if (!task)
        return NULL;
    all->current ^= over;
    queue->remark = task->level;
    return task;
}

/* Ends the turn at the tick nearest to the planned end, or when an interactive task waits and
 * this one is not interactive. */
POLICY_FUNCTION enum tick_verdict ule_tick(run_queue_t *queue, task_t *task)
{
    ule_queue_t *all = STATE_OF(queue, struct ule_queue);
    ule_charge(queue->scheduler, task);
    bool requested = level_first(&all->array[all->current & 1].counts) < ULE_RANKS &&
                     !ule_interactive(queue->scheduler, task);
    uint64_t used = task->run_time - ule_task_of(task)->turn;
    bool over = used + queue->scheduler->tick_ns / 2 >= ule_slice(queue->scheduler, task);
    return over || requested ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION void ule_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    ule_charge(queue->scheduler, task);
    if (reason == STOP_BLOCKED)
        ule_task_of(task)->slept = queue->now;
}

POLICY_FUNCTION bool ule_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    return ule_interactive(queue->scheduler, task) && !ule_interactive(queue->scheduler, running);
}

POLICY_FUNCTION uint64_t ule_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[ULE_SLICE] * 1000 / scheduler->tick_ns + 1;
}

POLICY_DEFINITION policy_ule = {
    .name = "ule",
    .meaning = "tasks that sleep more than they run go first; the others have one turn per round",
    .source = "Roberson 2003: FreeBSD's ULE",
    .order = "Interactive tasks are next, by their score; then the others, each once in a round.",
    .levels = "Level 0 is interactive: it sleeps more than it runs. Level 1 is all others.",
    .remark = "level {}: the best at which a task waits",
    .level_order = LEVELS_LOWEST_FIRST,
    .remark_kind = REMARK_LEVEL,
    .cost = COST_CONSTANT,
    .reads = "nice",
    .tunables = ule_tunables,
    .tunable_count = sizeof(ule_tunables) / sizeof(ule_tunables[0]),
    .rounds = 4,
    .task_bytes = sizeof(struct ule_task),
    .enqueue = ule_enqueue,
    .dequeue = ule_dequeue,
    .pick = ule_pick,
    .tick = ule_tick,
    .time_slice = ule_time_slice,
    .task_init = ule_task_init,
    .stopped = ule_stopped,
    .preempts = ule_preempts,
};
