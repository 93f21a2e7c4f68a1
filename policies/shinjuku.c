/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Preemption at microseconds (Shinjuku: Kaffes and others 2019): one list for all CPUs, in the
 * order of arrival, and a quantum that may be far shorter than a tick. As soon as a task waits,
 * tasks that have used up their quantum are preempted, the first picked first, and go to the end of
 * the list. So a request of a microsecond waits for the quanta of long requests, and not until they
 * finish. If no task waits, none is interrupted.
 *
 * All quanta are equally long. So the first quantum to end is that of the task picked first, and
 * one alarm for it suffices for all CPUs.
 *
 * `targets`: each priority is a class of requests with a separate list. The next list to be served
 * is the one whose first task has waited longest in proportion to the class's target. The target is
 * that task's attribute `deadline`; a task without one has a tick. So the waits of classes become
 * proportional to their targets, and none starves.
 */

#include "policy.h"
#include "task_list.h"

#define CLASSES  (PRIORITY_LOWEST + 1)
#define NO_CLASS CLASSES

enum { SHINJUKU_QUANTUM, SHINJUKU_TARGETS };

static const struct tunable shinjuku_tunables[] = {
    [SHINJUKU_QUANTUM] = {"quantum_us", "time slice in microseconds; 0: a task runs until it ends",
                          0, 1000, 1000000},
    [SHINJUKU_TARGETS] = {"targets",
                          "1: one queue per priority, with waits in proportion to deadlines", 0, 0,
                          1},
};

static const struct preset shinjuku_presets[] = {
    {"targets", "classes of requests wait in proportion to their deadlines", {{"targets", 1}}},
};

struct shinjuku_task {
    uint64_t since; /* when it entered its list, or was picked from it */
};

struct shinjuku_queue {
    struct task_list line[CLASSES];
    struct task_list running; /* in the order of their picks */
};

_Static_assert(sizeof(struct shinjuku_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct shinjuku_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct shinjuku_task SHARED_MEMORY shinjuku_task_t;
typedef struct shinjuku_queue SHARED_MEMORY shinjuku_queue_t;

/* While it is queued, the task's class is its level. */
POLICY_FUNCTION task_list_t *shinjuku_line(run_queue_t *queue, const task_t *task)
{
    return &STATE_OF(queue, struct shinjuku_queue)->line[task->level];
}

POLICY_FUNCTION uint64_t shinjuku_quantum(const run_queue_t *queue)
{
    return (uint64_t)queue->scheduler->tunable[SHINJUKU_QUANTUM] * 1000;
}

POLICY_FUNCTION bool shinjuku_quantum_is_over(const run_queue_t *queue, const task_t *running)
{
    uint64_t quantum = shinjuku_quantum(queue);
    return quantum > 0 && queue->now - STATE_OF(running, struct shinjuku_task)->since >= quantum;
}

/* Sets the alarm to the end of the first quantum if a task waits. */
POLICY_FUNCTION void shinjuku_set_alarm(run_queue_t *queue)
{
    const task_t *first = STATE_OF(queue, struct shinjuku_queue)->running.first;
    uint64_t quantum = shinjuku_quantum(queue);
    if (first && quantum > 0)
        queue->alarm = STATE_OF(first, struct shinjuku_task)->since + quantum;
}

/* Queues a task. A preempted task whose turn had not ended is the first of its list. */
POLICY_FUNCTION void shinjuku_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    bool first = reason == ENQUEUE_PREEMPTED && !shinjuku_quantum_is_over(queue, task);
    task->level = queue->scheduler->tunable[SHINJUKU_TARGETS] ? (uint64_t)task->priority : 0;
    task_list_t *line = shinjuku_line(queue, task);
    task_list_insert_before(line, task, first ? line->first : NULL);
    STATE_OF(task, struct shinjuku_task)->since = queue->now;
    shinjuku_set_alarm(queue);
}

POLICY_FUNCTION void shinjuku_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(shinjuku_line(queue, task), task);
}

/* Returns the task's wait, in thousandths of its target. */
POLICY_FUNCTION uint64_t shinjuku_lateness(const run_queue_t *queue, const task_t *task)
{
    uint64_t target = task->deadline ? task->deadline : queue->scheduler->tick_ns;
    return (queue->now - STATE_OF(task, struct shinjuku_task)->since) * 1000 / target;
}

/* Returns the class to be served next on `cpu`, the first of several; NO_CLASS if none waits. */
POLICY_FUNCTION uint32_t shinjuku_next_class(const run_queue_t *queue, uint32_t cpu)
{
    const shinjuku_queue_t *queue_state = STATE_OF(queue, struct shinjuku_queue);
    uint32_t latest = (uint32_t)LOOP_START(NO_CLASS);
    uint64_t most = LOOP_START(0);
    for (uint32_t class = LOOP_START(0); class < CLASSES && LOOP_GUARD; class ++) {
        const task_t *first = task_list_first_on(&queue_state->line[class], cpu);
        uint64_t lateness = first ? shinjuku_lateness(queue, first) + 1 : 0;
        if (lateness <= most)
            continue;
        latest = class;
        most = lateness;
    }
    return latest;
}

/* Returns the first task, of the list to be served next, that may run on `cpu`; null if none
 * waits. */
POLICY_FUNCTION task_t *shinjuku_next(run_queue_t *queue, uint32_t cpu)
{
    bool targets = queue->scheduler->tunable[SHINJUKU_TARGETS] != 0;
    uint32_t class = targets ? shinjuku_next_class(queue, cpu) : 0;
    if (class >= CLASSES)
        return NULL;
    return task_list_first_on(&STATE_OF(queue, struct shinjuku_queue)->line[class], cpu);
}

POLICY_FUNCTION task_t *shinjuku_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = shinjuku_next(queue, cpu);
    if (!task)
        return NULL;
    shinjuku_task_t *state = STATE_OF(task, struct shinjuku_task);
    shinjuku_dequeue(queue, task);
    queue->remark = queue->now - state->since;
    state->since = queue->now;
    task_list_append(&STATE_OF(queue, struct shinjuku_queue)->running, task);
    if (queue->queued > 1) /* this one is still counted */
        shinjuku_set_alarm(queue);
    return task;
}

POLICY_FUNCTION void shinjuku_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    (void)reason;
    task_list_remove(&STATE_OF(queue, struct shinjuku_queue)->running, task);
}

/* Returns the first task of the list, which may have the CPU of a task whose quantum has ended.
 * If no CPU is found, which only CPU sets can cause, the alarm is set again for later. */
POLICY_FUNCTION task_t *shinjuku_alarm(run_queue_t *queue)
{
    uint64_t quantum = shinjuku_quantum(queue);
    task_t *task = quantum > 0 ? shinjuku_next(queue, NO_CPU) : NULL;
    if (task)
        queue->alarm = queue->now + quantum;
    return task;
}

POLICY_FUNCTION bool shinjuku_preempts(run_queue_t *queue, const task_t *task,
                                       const task_t *running)
{
    (void)task;
    return shinjuku_quantum_is_over(queue, running);
}

POLICY_FUNCTION enum tick_verdict shinjuku_tick(run_queue_t *queue, task_t *task)
{
    bool over = queue->queued > 0 && shinjuku_quantum_is_over(queue, task);
    return over ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t shinjuku_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    uint64_t quantum = (uint64_t)scheduler->tunable[SHINJUKU_QUANTUM] * 1000;
    (void)task;
    return quantum ? quantum / scheduler->tick_ns + 1 : UINT64_MAX;
}

POLICY_FUNCTION bool shinjuku_shared_queue(const scheduler_t *scheduler)
{
    (void)scheduler;
    return true;
}

POLICY_DEFINITION policy_shinjuku = {
    .name = "shinjuku",
    .meaning = "one queue for all CPUs, in turns of microseconds",
    .source = "Kaffes and others 2019",
    .order = "The task that came first into the line is next.",
    .remark = "waited for {}",
    .remark_kind = REMARK_TIME,
    .cost = COST_CONSTANT,
    .reads = "priority:targets=1 deadline:targets=1",
    .tunables = shinjuku_tunables,
    .tunable_count = sizeof(shinjuku_tunables) / sizeof(shinjuku_tunables[0]),
    .presets = shinjuku_presets,
    .preset_count = sizeof(shinjuku_presets) / sizeof(shinjuku_presets[0]),
    .rounds = 4,
    .task_bytes = sizeof(struct shinjuku_task),
    .enqueue = shinjuku_enqueue,
    .dequeue = shinjuku_dequeue,
    .pick = shinjuku_pick,
    .tick = shinjuku_tick,
    .stopped = shinjuku_stopped,
    .alarm = shinjuku_alarm,
    .preempts = shinjuku_preempts,
    .time_slice = shinjuku_time_slice,
    .shared_queue = shinjuku_shared_queue,
};
