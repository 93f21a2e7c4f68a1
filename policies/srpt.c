/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Shortest remaining processing time (Schrage 1968): the task with the least work left runs, on
 * whichever CPU. No policy has a lower mean turnaround on one CPU, if what it is told is true: so
 * this one shows what is possible.
 *
 * What is known of a task is its attribute `runtime`: how long it is to compute, from when the
 * attribute was set. A task that blocks when it has done that begins anew with as much. Of one that
 * is told nothing, or has computed for longer than it was told, as much again is expected as it has
 * had: of such tasks, the one that has had the least runs, and they take turns of a tick (feedback:
 * Schrage 1967).
 *
 * `error`: what is told is off by a factor, drawn anew for each task, too much or too little alike.
 * `knows` 1: nothing is told, and what a task will compute before it blocks is foreseen as the
 * exponential average of how long it did before.
 */

#include "policy.h"
#include "random.h"
#include "task_heap.h"

enum { KNOWS_NOTHING, KNOWS_BURSTS, KNOWS_WORK };
enum { SRPT_KNOWS, SRPT_ERROR, SRPT_ALPHA, SRPT_PREEMPTION };

static const struct tunable srpt_tunables[] = {
    [SRPT_KNOWS] = {"knows", "2: what tasks are told; 1: how long they computed before; 0: nothing",
                    KNOWS_NOTHING, KNOWS_WORK, KNOWS_WORK},
    [SRPT_ERROR] = {"error",
                    "percent: what is told is up to so many times the truth, or that part of it",
                    100, 100, 100000},
    [SRPT_ALPHA] = {"alpha", "percent that the last time counts in the average of bursts", 1, 50,
                    100},
    [SRPT_PREEMPTION] = {"preemption", "1: a task with less work left takes the CPU at once", 0, 1,
                         1},
};

static const struct preset srpt_presets[] = {
    {"sjf", "shortest job first: what is told runs to its end", {{"preemption", 0}}},
    {"average", "bursts are foreseen by those before, and nothing is told", {{"knows", 1}}},
};

struct srpt_task {
    struct task_heap_node node;
    uint64_t told;     /* its runtime when that was read last */
    uint64_t expected; /* nanoseconds of the piece of work that it is at */
    uint64_t begun;    /* its run_time when it began that */
    uint64_t random;
};

struct srpt_queue {
    struct task_heap waiting;
};

_Static_assert(sizeof(struct srpt_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct srpt_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct srpt_task SHARED_MEMORY srpt_task_t;

/* The work as it is told, with the task's own error: whenever it is asked for, the same. */
POLICY_FUNCTION uint64_t srpt_told(const scheduler_t *scheduler, const task_t *task)
{
    srpt_task_t *own = STATE_OF(task, struct srpt_task);
    own->random = scheduler->seed ^ (uint64_t)task->pid << 32;
    uint64_t drawn = random_splitmix(&own->random);
    uint64_t factor = 100 + (drawn >> 1) % ((uint64_t)scheduler->tunable[SRPT_ERROR] - 99);
    return drawn & 1 ? task->runtime * factor / 100 : task->runtime * 100 / factor;
}

/* The task has a piece of work before it. */
POLICY_FUNCTION void srpt_begin(const scheduler_t *scheduler, task_t *task, uint64_t run_time)
{
    srpt_task_t *own = STATE_OF(task, struct srpt_task);
    own->begun = run_time;
    if (scheduler->tunable[SRPT_KNOWS] != KNOWS_WORK)
        return; /* an average stays what it was */
    own->told = task->runtime;
    own->expected = srpt_told(scheduler, task);
}

/* What is expected that the task has still to do. */
POLICY_FUNCTION uint64_t srpt_left(const task_t *task, uint64_t run_time)
{
    const srpt_task_t *own = STATE_OF(task, struct srpt_task);
    uint64_t done = run_time - own->begun;
    return done < own->expected ? own->expected - done : done;
}

POLICY_FUNCTION void srpt_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    (void)parent;
    srpt_begin(scheduler, task, task->run_time);
}

/* A task begins anew if it has done all and blocked, or if something else is told of it. */
POLICY_FUNCTION void srpt_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    const srpt_task_t *own = STATE_OF(task, struct srpt_task);
    bool told = queue->scheduler->tunable[SRPT_KNOWS] == KNOWS_WORK && task->runtime != own->told;
    bool done = reason == ENQUEUE_WOKEN && task->run_time - own->begun >= own->told;
    if (told || done)
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

/* Has the task computed for longer than was told or foreseen, or is nothing known of it? */
POLICY_FUNCTION bool srpt_unknown(const task_t *task)
{
    const srpt_task_t *own = STATE_OF(task, struct srpt_task);
    return task->run_time - own->begun >= own->expected;
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
    srpt_task_t *own = STATE_OF(task, struct srpt_task);
    uint64_t alpha = (uint64_t)queue->scheduler->tunable[SRPT_ALPHA];
    if (reason != STOP_BLOCKED || queue->scheduler->tunable[SRPT_KNOWS] != KNOWS_BURSTS)
        return;
    uint64_t burst = task->run_time - own->begun;
    uint64_t before = own->expected ? own->expected : burst;
    own->expected = (alpha * burst + (100 - alpha) * before) / 100;
}

/* One of which nothing is known waits for the next tick. */
POLICY_FUNCTION bool srpt_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    return queue->scheduler->tunable[SRPT_PREEMPTION] && !srpt_unknown(task) &&
           srpt_left(task, task->run_time) < srpt_left(running, run_time_now(queue, running));
}

POLICY_FUNCTION uint64_t srpt_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    bool told = scheduler->tunable[SRPT_KNOWS] == KNOWS_WORK && task->runtime > 0;
    return told ? task->runtime / scheduler->tick_ns + 1 : 1;
}

POLICY_FUNCTION bool srpt_shared_queue(const scheduler_t *scheduler)
{
    (void)scheduler;
    return true;
}

POLICY_DEFINITION policy_srpt = {
    .name = "srpt",
    .meaning = "the least work left first, by what tasks are told of their work",
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
