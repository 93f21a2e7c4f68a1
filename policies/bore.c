/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Burst-oriented response enhancer (Suzuki 2021, by its documentation): fair shares, with smaller
 * shares for tasks that compute for long without a pause.
 *
 * A task's burst is its CPU use since it last slept or yielded. Its score grows with the logarithm
 * of the burst: by `scale` percent of a level for each doubling beyond 2^`offset` ns, to at most
 * 39. The larger of the present score and the average of earlier scores counts. The score is added
 * to the nice value, and a level has 1.25 times the weight of the next (nice_weights.h). When a
 * burst ends, its score is averaged with earlier scores: one short burst does not make a task
 * interactive. A child starts with its parent's score.
 *
 * The rest is start-time fair queueing (Goyal, Guo and Vin 1996). Each task's virtual time advances
 * by its CPU use divided by its weight, and the task with the least runs. A returning task keeps
 * its virtual time, or takes the CPU's if that is later. A task that wakes preempts if its virtual
 * time is `wakeup_us` less.
 *
 * BORE itself changes the weights of Linux's fair class. The values of offset and scale here are
 * schedlab's.
 */

#include "nice_weights.h"
#include "policy.h"
#include "task_heap.h"

enum { BORE_SLICE, BORE_WAKEUP, BORE_OFFSET, BORE_SCALE };

static const struct tunable bore_tunables[] = {
    [BORE_SLICE] = {"slice_us", "microseconds of a turn", 100, 3000, 100000},
    [BORE_WAKEUP] =
        {"wakeup_us",
         "microseconds, at default weight, that a waking task must be behind to preempt", 0, 1000,
         100000},
    [BORE_OFFSET] = {"offset", "bursts of up to 2^offset nanoseconds have no penalty", 0, 22, 40},
    [BORE_SCALE] = {"scale", "penalty of each doubling beyond that, in percent of a nice level", 0,
                    125, 1000},
};

#define BORE_SCORE_MAX 39
#define BORE_PART      256 /* of a score */

struct bore_task {
    struct task_heap_node node;
    uint64_t time;    /* virtual, of its CPU; during a move: its lead over the clock */
    uint64_t charged; /* run_time that is already charged */
    uint64_t turn;    /* its run_time when it was picked */
    uint64_t burst;   /* nanoseconds since its last pause */
    uint64_t before;  /* average score of earlier bursts, in units of 1/BORE_PART */
    uint32_t cpu;     /* 1 more than the CPU of `time`; 0: none */
};

struct bore_queue {
    struct task_heap waiting;
    uint64_t clock; /* the virtual time of the task that was picked last */
};

_Static_assert(sizeof(struct bore_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct bore_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct bore_task SHARED_MEMORY bore_task_t;
typedef struct bore_queue SHARED_MEMORY bore_queue_t;

POLICY_FUNCTION bore_task_t *bore_task_of(const task_t *task)
{
    return STATE_OF(task, struct bore_task);
}

POLICY_FUNCTION bore_queue_t *bore_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct bore_queue);
}

/* ---- the score ---- */

/* Returns the base-2 logarithm of a burst, interpolated linearly between powers, in units of
 * 1/BORE_PART. */
POLICY_FUNCTION uint64_t bore_logarithm(uint64_t burst)
{
    uint32_t bits = 63 - (uint32_t)__builtin_clzll(burst | 1);
    uint64_t rest = burst - (1ull << bits);
    uint64_t part = bits > 8 ? rest >> (bits - 8) : 0;
    return burst ? bits * BORE_PART + part : 0;
}

POLICY_FUNCTION uint64_t bore_burst_score(const scheduler_t *scheduler, uint64_t burst)
{
    uint64_t free = (uint64_t)scheduler->tunable[BORE_OFFSET] * BORE_PART;
    uint64_t size = bore_logarithm(burst);
    uint64_t score =
        size > free ? (size - free) * (uint64_t)scheduler->tunable[BORE_SCALE] / 100 : 0;
    return score < BORE_SCORE_MAX * BORE_PART ? score : BORE_SCORE_MAX * BORE_PART;
}

POLICY_FUNCTION uint64_t bore_score(const scheduler_t *scheduler, const task_t *task)
{
    const bore_task_t *state = bore_task_of(task);
    uint64_t now = bore_burst_score(scheduler, state->burst);
    return now > state->before ? now : state->before;
}

POLICY_FUNCTION uint64_t bore_weight(const scheduler_t *scheduler, const task_t *task)
{
    int32_t level = task->nice + (int32_t)(bore_score(scheduler, task) / BORE_PART);
    return nice_weight(level < NICE_LAST ? level : NICE_LAST);
}

/* The task pauses. */
POLICY_FUNCTION void bore_end_burst(const scheduler_t *scheduler, task_t *task)
{
    bore_task_t *state = bore_task_of(task);
    state->before = (state->before + bore_burst_score(scheduler, state->burst)) / 2;
    state->burst = 0;
}

/* ---- virtual time ---- */

POLICY_FUNCTION void bore_charge(run_queue_t *queue, const task_t *task)
{
    bore_task_t *state = bore_task_of(task);
    uint64_t used = task->run_time - state->charged;
    state->charged = task->run_time;
    state->burst += used;
    state->time += used * NICE_WEIGHT_USUAL / bore_weight(queue->scheduler, task);
}

/* Handles a task that moves to another CPU. */
POLICY_FUNCTION void bore_part(const run_queue_t *queue, task_t *task)
{
    bore_task_of(task)->time -= bore_queue_of(queue)->clock;
    bore_task_of(task)->cpu = 0;
}

/* Handles a task that arrives or returns. A task that slept elsewhere has no virtual time here. */
POLICY_FUNCTION void bore_join(const run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    bore_task_t *state = bore_task_of(task);
    uint64_t clock = bore_queue_of(queue)->clock;
    if (state->cpu != queue->cpu + 1)
        state->time = clock + (reason == ENQUEUE_MOVED ? state->time : 0);
    if ((int64_t)(state->time - clock) < 0)
        state->time = clock;
    state->charged = task->run_time;
    state->cpu = queue->cpu + 1;
}

/* ---- hooks ---- */

POLICY_FUNCTION void bore_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    if (parent)
        bore_task_of(task)->before = bore_score(scheduler, parent);
}

POLICY_FUNCTION void bore_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    if (reason == ENQUEUE_YIELDED)
        bore_end_burst(queue->scheduler, task);
    if (reason == ENQUEUE_WOKEN || bore_task_of(task)->cpu != queue->cpu + 1)
        bore_join(queue, task, reason);
    task_heap_insert(&bore_queue_of(queue)->waiting, task, bore_task_of(task)->time);
}

POLICY_FUNCTION void bore_dequeue(run_queue_t *queue, task_t *task)
{
    task_heap_remove(&bore_queue_of(queue)->waiting, task);
    bore_part(queue, task);
}

POLICY_FUNCTION task_t *bore_pick(run_queue_t *queue, uint32_t cpu)
{
    bore_queue_t *all = bore_queue_of(queue);
    task_t *task = task_heap_take_first_on(&all->waiting, cpu);
    if (!task)
        return NULL;
    bore_task_t *state = bore_task_of(task);
    if ((int64_t)(state->time - all->clock) > 0)
        all->clock = state->time;
    state->turn = task->run_time;
    queue->remark = state->time;
    return task;
}

/* Ends the turn at the tick nearest to the planned end. */
POLICY_FUNCTION enum tick_verdict bore_tick(run_queue_t *queue, task_t *task)
{
    uint64_t slice = (uint64_t)queue->scheduler->tunable[BORE_SLICE] * 1000;
    bore_charge(queue, task);
    task->level = bore_score(queue->scheduler, task) / BORE_PART;
    uint64_t used = task->run_time - bore_task_of(task)->turn;
    return used + queue->scheduler->tick_ns / 2 >= slice ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION void bore_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    bore_charge(queue, task);
    if (reason == STOP_BLOCKED)
        bore_end_burst(queue->scheduler, task);
    task->level = bore_score(queue->scheduler, task) / BORE_PART;
}

POLICY_FUNCTION bool bore_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    const bore_task_t *other = bore_task_of(running);
    uint64_t used = run_time_now(queue, running) - other->charged;
    used = used * NICE_WEIGHT_USUAL / bore_weight(queue->scheduler, running);
    int64_t behind = (int64_t)(other->time + used - bore_task_of(task)->time);
    return behind > queue->scheduler->tunable[BORE_WAKEUP] * 1000;
}

POLICY_FUNCTION uint64_t bore_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[BORE_SLICE] * 1000 / scheduler->tick_ns + 1;
}

POLICY_FUNCTION task_t *bore_steal(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = task_heap_first_on(&bore_queue_of(queue)->waiting, cpu);
    if (task)
        bore_dequeue(queue, task);
    return task;
}

POLICY_DEFINITION policy_bore = {
    .name = "bore",
    .meaning = "fair shares, smaller for tasks that compute for long without a pause",
    .source = "Suzuki 2021: BORE; Goyal, Guo and Vin 1996",
    .order = "The task with the least virtual time is next; long bursts make that go faster.",
    .remark = "the least virtual time: {}",
    .remark_kind = REMARK_TIME,
    .cost = COST_LOGARITHMIC,
    .reads = "nice",
    .tunables = bore_tunables,
    .tunable_count = sizeof(bore_tunables) / sizeof(bore_tunables[0]),
    .rounds = 8,
    .task_bytes = sizeof(struct bore_task),
    .enqueue = bore_enqueue,
    .dequeue = bore_dequeue,
    .pick = bore_pick,
    .tick = bore_tick,
    .time_slice = bore_time_slice,
    .task_init = bore_task_init,
    .stopped = bore_stopped,
    .preempts = bore_preempts,
    .steal = bore_steal,
};
