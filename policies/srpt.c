/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Shortest remaining processing time (Schrage 1968): the task with the least work left runs, on any
 * CPU. No policy has a lower mean turnaround on one CPU, if the declared work is true. So this
 * policy shows the optimum.
 *
 * A task declares its work by its attribute `runtime`: the computation ahead when the attribute was
 * set. A task that blocks when its work is done starts again with the same amount. If a task
 * declares nothing, or exceeds its declaration, its expected remaining work is the work done so
 * far. Of such tasks the one with the least runs, and they take turns of a tick (feedback: Schrage
 * 1967).
 *
 * `error`: the declaration is multiplied by a random factor for each task, equally likely too high
 * or too low. `knows` 1: nothing is declared. The expected work until a task blocks is the
 * exponential average of its earlier periods of work.
 */

#include "policy.h"
#include "random.h"
#include "task_heap.h"

enum { KNOWS_NOTHING, KNOWS_BURSTS, KNOWS_WORK };
enum { SRPT_KNOWS, SRPT_ERROR, SRPT_ALPHA, SRPT_PREEMPTION };

static const struct tunable srpt_tunables[] = {
    [SRPT_KNOWS] = {"knows",
                    "source of the expected work: 2: declarations; 1: earlier bursts; 0: none",
                    KNOWS_NOTHING, KNOWS_WORK, KNOWS_WORK},
    [SRPT_ERROR] = {"error",
                    "largest error factor of the declared work, in percent, too high or too low",
                    100, 100, 100000},
    [SRPT_ALPHA] = {"alpha", "weight of the last burst in the average of bursts, in percent", 1, 50,
                    100},
    [SRPT_PREEMPTION] = {"preemption", "1: a task with less work left preempts at once", 0, 1, 1},
};

static const struct preset srpt_presets[] = {
    {"sjf", "shortest job first: declared work runs until it ends", {{"preemption", 0}}},
    {"average",
     "the expected burst is the average of earlier bursts; nothing is declared",
     {{"knows", 1}}},
};

struct srpt_task {
    struct task_heap_node node;
    uint64_t last_runtime; /* its runtime when it was last read */
    uint64_t expected;     /* nanoseconds of its present piece of work */
    uint64_t piece_begin;  /* its run_time when that piece began */
    uint64_t random;
};

struct srpt_queue {
    struct task_heap waiting;
};

_Static_assert(sizeof(struct srpt_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct srpt_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct srpt_task SHARED_MEMORY srpt_task_t;

/* Returns the declared work with the task's error factor: the same value for each call. */
POLICY_FUNCTION uint64_t srpt_known(const scheduler_t *scheduler, const task_t *task)
{
    srpt_task_t *state = STATE_OF(task, struct srpt_task);
    state->random = scheduler->seed ^ (uint64_t)task->pid << 32;
    uint64_t drawn = random_splitmix(&state->random);
    uint64_t factor = 100 + (drawn >> 1) % ((uint64_t)scheduler->tunable[SRPT_ERROR] - 99);
    return drawn & 1 ? task->runtime * factor / 100 : task->runtime * 100 / factor;
}

/* Starts a piece of work of the task. */
POLICY_FUNCTION void srpt_begin(const scheduler_t *scheduler, task_t *task, uint64_t run_time)
{
    srpt_task_t *state = STATE_OF(task, struct srpt_task);
    state->piece_begin = run_time;
    if (scheduler->tunable[SRPT_KNOWS] != KNOWS_WORK)
        return; /* an average does not change */
    state->last_runtime = task->runtime;
    state->expected = srpt_known(scheduler, task);
}

/* Returns the expected rest of the task's work. */
POLICY_FUNCTION uint64_t srpt_left(const task_t *task, uint64_t run_time)
{
    const srpt_task_t *state = STATE_OF(task, struct srpt_task);
    uint64_t done = run_time - state->piece_begin;
    return done < state->expected ? state->expected - done : done;
}

POLICY_FUNCTION void srpt_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    (void)parent;
    srpt_begin(scheduler, task, task->run_time);
}

/* Queues the task. Its work starts again if it finished and blocked, or if its declaration
 * changed. */
POLICY_FUNCTION void srpt_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    const srpt_task_t *state = STATE_OF(task, struct srpt_task);
    bool is_known =
        queue->scheduler->tunable[SRPT_KNOWS] == KNOWS_WORK && task->runtime != state->last_runtime;
    bool done =
        reason == ENQUEUE_WOKEN && task->run_time - state->piece_begin >= state->last_runtime;
    if (is_known || done)
        srpt_begin(queue->scheduler, task, task->run_time);
    task_heap_insert(&STATE_OF(queue, struct srpt_queue)->waiting, task,
                     srpt_left(task, task->run_time));
}

POLICY_FUNCTION void srpt_dequeue(run_queue_t *queue, task_t *task)
{
    task_heap_remove(&STATE_OF(queue, struct srpt_queue)->waiting, task);
}

POLICY_FUNCTION task_t *srpt_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = task_heap_take_first_on(&STATE_OF(queue, struct srpt_queue)->waiting, cpu);
    if (task)
        queue->remark = STATE_OF(task, struct srpt_task)->node.key;
    return task;
}

/* Returns true if the task exceeded its declared or expected work, or if neither exists. */
POLICY_FUNCTION bool srpt_unknown(const task_t *task)
{
    const srpt_task_t *state = STATE_OF(task, struct srpt_task);
    return task->run_time - state->piece_begin >= state->expected;
}

POLICY_FUNCTION enum tick_verdict srpt_tick(run_queue_t *queue, task_t *task)
{
    const task_t *first = STATE_OF(queue, struct srpt_queue)->waiting.first;
    bool less = first && queue->scheduler->tunable[SRPT_PREEMPTION] &&
                task_heap_node(first)->key < srpt_left(task, task->run_time);
    return less || srpt_unknown(task) ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION void srpt_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    srpt_task_t *state = STATE_OF(task, struct srpt_task);
    uint64_t alpha = (uint64_t)queue->scheduler->tunable[SRPT_ALPHA];
    if (reason != STOP_BLOCKED || queue->scheduler->tunable[SRPT_KNOWS] != KNOWS_BURSTS)
        return;
    uint64_t burst = task->run_time - state->piece_begin;
    uint64_t before = state->expected ? state->expected : burst;
    state->expected = (alpha * burst + (100 - alpha) * before) / 100;
}

/* A task of unknown work waits for the next tick. */
POLICY_FUNCTION bool srpt_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    return queue->scheduler->tunable[SRPT_PREEMPTION] && !srpt_unknown(task) &&
           srpt_left(task, task->run_time) < srpt_left(running, run_time_now(queue, running));
}

POLICY_FUNCTION uint64_t srpt_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    bool is_known = scheduler->tunable[SRPT_KNOWS] == KNOWS_WORK && task->runtime > 0;
    return is_known ? task->runtime / scheduler->tick_ns + 1 : 1;
}

POLICY_FUNCTION bool srpt_shared_queue(const scheduler_t *scheduler)
{
    (void)scheduler;
    return true;
}

POLICY_DEFINITION policy_srpt = {
    .name = "srpt",
    .meaning = "the least work left first, according to the tasks' declared work",
    .source = "Schrage 1968; feedback: Schrage 1967",
    .order = "The task with the least work left, as far as that is known, is next.",
    .remark = "the least work left: {}",
    .remark_kind = REMARK_TIME,
    .cost = COST_LOGARITHMIC,
    .reads = "runtime:knows=2",
    .tunables = srpt_tunables,
    .tunable_count = sizeof(srpt_tunables) / sizeof(srpt_tunables[0]),
    .presets = srpt_presets,
    .preset_count = sizeof(srpt_presets) / sizeof(srpt_presets[0]),
    .task_bytes = sizeof(struct srpt_task),
    .enqueue = srpt_enqueue,
    .dequeue = srpt_dequeue,
    .pick = srpt_pick,
    .tick = srpt_tick,
    .time_slice = srpt_time_slice,
    .task_init = srpt_task_init,
    .stopped = srpt_stopped,
    .preempts = srpt_preempts,
    .shared_queue = srpt_shared_queue,
};
