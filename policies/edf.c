/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Earliest deadline first (Liu and Layland 1973), each task within its reservation by a constant
 * bandwidth server (Abeni and Buttazzo 1998).
 *
 * A task that asks for `runtime` in each `period` is admitted if its CPU has that much left to
 * reserve. The admitted task with the earliest deadline runs. Each has a budget. A task that has
 * used its budget waits for its next period (`throttle`), or continues with its deadline postponed
 * by a period. So no task takes reserved time from another. A task that wakes keeps its budget and
 * its deadline. If it would then exceed its part before the deadline, a new period begins instead.
 *
 * Tasks without a reservation share the remaining time in turns. A task that does not fit on its
 * CPU is one of them, and moves to a CPU with enough capacity left.
 *
 * By default each CPU has its own queue, and reservations do not move. `global`: one queue, whose
 * earliest deadline each CPU takes.
 */

#include "placement.h"
#include "policy.h"
#include "task_heap.h"
#include "task_list.h"

enum { EDF_GLOBAL, EDF_THROTTLE, EDF_LIMIT, EDF_SLICE };

static const struct tunable edf_tunables[] = {
    [EDF_GLOBAL] = {"global", "1: one queue for all CPUs; 0: one for each", 0, 0, 1},
    [EDF_THROTTLE] = {"throttle",
                      "1: a task that has used its runtime waits for its next period; 0: it "
                      "continues with a later deadline",
                      0, 1, 1},
    [EDF_LIMIT] = {"limit",
                   "percent of the CPUs' time that can be reserved; above 100, deadlines may be "
                   "missed",
                   1, 95, 1000},
    [EDF_SLICE] = {"slice", "time slice of a task without a reservation, in ticks", 1, 1, 1000},
};

static const struct preset edf_presets[] = {
    {"global", "all CPUs take the earliest deadline of one queue", {{"global", 1}}},
};

enum edf_place { EDF_NOWHERE, EDF_READY, EDF_HELD, EDF_REST, EDF_LEAVING };

struct edf_task {
    struct task_heap_node node;
    uint64_t release;  /* when its period began */
    uint64_t deadline; /* of this period */
    uint64_t budget;   /* nanoseconds left of its runtime */
    uint64_t charged;  /* run_time that is already charged */
    uint64_t reserved; /* of a CPU, in units of 1/EDF_WHOLE; 0: not admitted */
    uint64_t ticks;    /* used of the slice */
    uint64_t place;    /* enum edf_place */
};

struct edf_queue {
    struct task_heap ready;              /* by their deadlines */
    struct task_heap waiting_for_period; /* ordered by the start of their next periods */
    struct task_list rest;
    struct task_list leaving; /* without a reservation; another CPU has room for them */
    uint64_t leaving_count;
    uint64_t reserved; /* reserved by the tasks that belong here */
};

_Static_assert(sizeof(struct edf_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct edf_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct edf_task SHARED_MEMORY edf_task_t;
typedef struct edf_queue SHARED_MEMORY edf_queue_t;

#define EDF_FULL (1ull << 20)

POLICY_FUNCTION edf_task_t *edf_task_of(const task_t *task)
{
    return STATE_OF(task, struct edf_task);
}

POLICY_FUNCTION edf_queue_t *edf_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct edf_queue);
}

/* Returns the nanoseconds from the start of a period to its deadline. */
POLICY_FUNCTION uint64_t edf_relative(const task_t *task)
{
    return task->deadline && task->deadline < task->period ? task->deadline : task->period;
}

/* Returns the part of a CPU that the task asks for; 0: it has no deadlines. */
POLICY_FUNCTION uint64_t edf_requested(const task_t *task)
{
    if (task->runtime == 0 || task->period == 0)
        return 0;
    uint64_t part = task->runtime * EDF_FULL / edf_relative(task);
    return part > 0 ? part : 1;
}

/* ---- budgets and deadlines ---- */

POLICY_FUNCTION void edf_charge(task_t *task)
{
    edf_task_t *state = edf_task_of(task);
    uint64_t used = task->run_time - state->charged;
    state->charged = task->run_time;
    state->budget -= used < state->budget ? used : state->budget;
}

POLICY_FUNCTION void edf_begin_period(task_t *task, uint64_t release)
{
    edf_task_t *state = edf_task_of(task);
    state->release = release;
    state->deadline = release + edf_relative(task);
    state->budget = task->runtime;
}

/* Continues after a pick or at a tick: the host's own use of the task's time is not charged. */
POLICY_FUNCTION void edf_go_on(run_queue_t *queue, task_t *task)
{
    edf_task_t *state = edf_task_of(task);
    state->budget += queue->scheduler->overhead_ns;
    queue->turn_end = queue->now + state->budget;
}

/* Starts a new period if a task that wakes would exceed its part before its deadline. */
POLICY_FUNCTION void edf_wake(const run_queue_t *queue, task_t *task)
{
    const edf_task_t *state = edf_task_of(task);
    uint64_t left = state->deadline > queue->now ? state->deadline - queue->now : 0;
    if (left == 0 || state->budget > left * state->reserved / EDF_FULL)
        edf_begin_period(task, queue->now);
}

POLICY_FUNCTION uint64_t edf_next_release(const task_t *task)
{
    return edf_task_of(task)->release + task->period;
}

/* Handles a used-up budget. Returns false if the task must wait for its next period. */
POLICY_FUNCTION bool edf_refill(const run_queue_t *queue, task_t *task)
{
    uint64_t next = edf_next_release(task);
    bool waits = queue->scheduler->tunable[EDF_THROTTLE] && next > queue->now;
    if (!waits)
        edf_begin_period(task, next + task->period > queue->now ? next : queue->now);
    return !waits;
}

/* ---- reservations ---- */

POLICY_FUNCTION uint64_t edf_room(const scheduler_t *scheduler)
{
    uint64_t cpus = scheduler->tunable[EDF_GLOBAL] ? scheduler->cpus : 1;
    return cpus * EDF_FULL * (uint64_t)scheduler->tunable[EDF_LIMIT] / 100;
}

POLICY_FUNCTION bool edf_fits(const run_queue_t *queue, uint64_t requested)
{
    return requested > 0 && requested <= EDF_FULL &&
           edf_queue_of(queue)->reserved + requested <= edf_room(queue->scheduler);
}

POLICY_FUNCTION void edf_withdraw(run_queue_t *queue, task_t *task)
{
    edf_queue_of(queue)->reserved -= edf_task_of(task)->reserved;
    edf_task_of(task)->reserved = 0;
}

/* Returns true if the task may run on a CPU of this queue. */
POLICY_FUNCTION bool edf_may_stay(const run_queue_t *queue, const task_t *task)
{
    return queue->scheduler->queues == 1 || task_may_run_on(task, queue->cpu);
}

/* Sets the reservation to the task's request, if the CPU has enough left, and starts its first
 * period. */
POLICY_FUNCTION void edf_admit(run_queue_t *queue, task_t *task)
{
    edf_task_t *state = edf_task_of(task);
    uint64_t requested = edf_requested(task);
    if (!edf_fits(queue, requested) || !edf_may_stay(queue, task))
        return;
    state->reserved = requested;
    edf_queue_of(queue)->reserved += requested;
    edf_begin_period(task, queue->now);
}

POLICY_FUNCTION void edf_changed(run_queue_t *queue, task_t *task)
{
    if (edf_requested(task) == edf_task_of(task)->reserved && edf_may_stay(queue, task))
        return;
    edf_withdraw(queue, task);
    edf_admit(queue, task);
}

/* Returns the CPU with the most unreserved time that `task` may use; null allows any. Returns
 * NO_CPU if no CPU has enough. Another CPU's number may be slightly stale: the task's arrival
 * there checks again. */
POLICY_FUNCTION uint32_t edf_roomiest(const scheduler_t *scheduler, const task_t *task,
                                      uint64_t requested)
{
    uint32_t best = NO_CPU;
    uint64_t least = UINT64_MAX;
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->queues && LOOP_GUARD; cpu++) {
        uint64_t reserved = edf_queue_of(scheduler->queue[cpu])->reserved;
        if (reserved >= least || !edf_fits(scheduler->queue[cpu], requested))
            continue;
        if (task && !task_may_run_on(task, cpu))
            continue;
        best = cpu;
        least = reserved;
    }
    return best;
}

/* ---- the queue ---- */

POLICY_FUNCTION void edf_set_alarm(run_queue_t *queue)
{
    const task_t *first = edf_queue_of(queue)->waiting_for_period.first;
    queue->alarm = first ? task_heap_node(first)->key : 0;
}

POLICY_FUNCTION void edf_hold(run_queue_t *queue, task_t *task)
{
    edf_task_of(task)->place = EDF_HELD;
    task_heap_insert(&edf_queue_of(queue)->waiting_for_period, task, edf_next_release(task));
    queue->held++;
    edf_set_alarm(queue);
}

POLICY_FUNCTION void edf_make_ready(run_queue_t *queue, task_t *task)
{
    edf_task_of(task)->place = EDF_READY;
    task_heap_insert(&edf_queue_of(queue)->ready, task, edf_task_of(task)->deadline);
}

/* Queues a task without a reservation. A preempted task resumes its slice. */
POLICY_FUNCTION void edf_line_up(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    edf_queue_t *all = edf_queue_of(queue);
    edf_task_t *state = edf_task_of(task);
    uint64_t requested = edf_requested(task);
    uint32_t cpu = requested ? edf_roomiest(queue->scheduler, task, requested) : NO_CPU;
    if (cpu != NO_CPU && cpu != queue->cpu) {
        state->place = EDF_LEAVING;
        all->leaving_count++;
        task_list_append(&all->leaving, task);
        return;
    }
    state->place = EDF_REST;
    if (reason != ENQUEUE_PREEMPTED)
        state->ticks = 0;
    task_list_insert_before(&all->rest, task, reason == ENQUEUE_PREEMPTED ? all->rest.first : NULL);
}

POLICY_FUNCTION void edf_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    edf_task_t *state = edf_task_of(task);
    if (state->reserved == 0)
        edf_admit(queue, task);
    task->level = state->reserved == 0;
    if (state->reserved == 0) {
        edf_line_up(queue, task, reason);
        return;
    }
    if (reason == ENQUEUE_YIELDED)
        state->budget = 0;
    else if (reason != ENQUEUE_EXPIRED && reason != ENQUEUE_PREEMPTED)
        edf_wake(queue, task);
    if (state->budget > 0 || edf_refill(queue, task))
        edf_make_ready(queue, task);
    else
        edf_hold(queue, task);
}

/* Takes out the task, wherever in the queue it is. */
POLICY_FUNCTION void edf_take(run_queue_t *queue, task_t *task)
{
    edf_queue_t *all = edf_queue_of(queue);
    uint64_t place = edf_task_of(task)->place;
    edf_task_of(task)->place = EDF_NOWHERE;
    if (place == EDF_READY) {
        task_heap_remove(&all->ready, task);
    } else if (place == EDF_HELD) {
        task_heap_remove(&all->waiting_for_period, task);
        queue->held--;
        edf_set_alarm(queue);
    } else if (place == EDF_LEAVING) {
        task_list_remove(&all->leaving, task);
        all->leaving_count--;
    } else {
        task_list_remove(&all->rest, task);
    }
}

/* Removes the task. A reservation stays with its queue: the task has none yet in another queue. */
POLICY_FUNCTION void edf_dequeue(run_queue_t *queue, task_t *task)
{
    edf_take(queue, task);
}

POLICY_FUNCTION task_t *edf_pick(run_queue_t *queue, uint32_t cpu)
{
    const edf_queue_t *all = edf_queue_of(queue);
    task_t *task = task_heap_first_on(&all->ready, cpu);
    if (!task)
        task = task_list_first_on(&all->rest, cpu);
    if (!task)
        task = task_list_first_on(&all->leaving, cpu);
    if (!task && queue->scheduler->ending)
        task = task_heap_first_on(&all->waiting_for_period, cpu);
    if (!task)
        return NULL;
    edf_take(queue, task);
    edf_task_of(task)->charged = task->run_time;
    if (edf_task_of(task)->reserved > 0) {
        edf_go_on(queue, task);
        queue->remark = edf_task_of(task)->deadline;
    }
    return task;
}

/* ---- while a task runs ---- */

POLICY_FUNCTION enum tick_verdict edf_turn_over(run_queue_t *queue, task_t *task)
{
    edf_task_t *state = edf_task_of(task);
    edf_charge(task);
    if (state->reserved == 0)
        return TICK_CONTINUE;
    queue->turn_end = queue->now + state->budget;
    return state->budget > 0 ? TICK_CONTINUE : TICK_PREEMPT;
}

POLICY_FUNCTION enum tick_verdict edf_tick(run_queue_t *queue, task_t *task)
{
    edf_task_t *state = edf_task_of(task);
    edf_charge(task);
    if (state->reserved > 0) {
        if (state->budget > 0)
            edf_go_on(queue, task);
        return TICK_CONTINUE;
    }
    state->ticks++;
    return state->ticks >= (uint64_t)queue->scheduler->tunable[EDF_SLICE] ? TICK_PREEMPT
                                                                          : TICK_CONTINUE;
}

POLICY_FUNCTION task_t *edf_alarm(run_queue_t *queue)
{
    task_t *task = edf_queue_of(queue)->waiting_for_period.first;
    if (task && edf_next_release(task) <= queue->now) {
        edf_take(queue, task);
        edf_refill(queue, task);
        edf_make_ready(queue, task);
    } else {
        task = NULL;
    }
    edf_set_alarm(queue);
    return task;
}

POLICY_FUNCTION bool edf_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    const edf_task_t *state = edf_task_of(task);
    const edf_task_t *other = edf_task_of(running);
    (void)queue;
    if (state->place != EDF_READY)
        return false;
    return other->reserved == 0 || state->deadline < other->deadline;
}

POLICY_FUNCTION void edf_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    edf_charge(task);
    if (reason == STOP_ENDED)
        edf_withdraw(queue, task);
}

/* In ticks, for display. */
POLICY_FUNCTION uint64_t edf_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    if (edf_requested(task) > 0)
        return task->runtime / scheduler->tick_ns + 1;
    return (uint64_t)scheduler->tunable[EDF_SLICE];
}

/* ---- several CPUs ---- */

/* Places a task with a reservation on the CPU of its reservation. */
POLICY_FUNCTION uint32_t edf_place(const scheduler_t *scheduler, const task_t *task,
                                   enum enqueue_reason reason)
{
    if (reason == ENQUEUE_WOKEN && edf_requested(task) > 0)
        return home_cpu_of(scheduler, task);
    return place_fewest(scheduler, task);
}

POLICY_FUNCTION uint32_t edf_push(const scheduler_t *scheduler, uint32_t cpu)
{
    if (edf_queue_of(scheduler->queue[cpu])->leaving_count > 0)
        return edf_roomiest(scheduler, NULL, 1);
    return push_to_idle(scheduler, cpu);
}

POLICY_FUNCTION task_t *edf_steal(run_queue_t *queue, uint32_t cpu)
{
    const edf_queue_t *all = edf_queue_of(queue);
    task_t *task = task_list_first_on(&all->leaving, cpu);
    if (task && !edf_fits(queue->scheduler->queue[cpu], edf_requested(task)))
        task = NULL;
    if (!task)
        task = task_list_first_on(&all->rest, cpu);
    if (task)
        edf_take(queue, task);
    return task;
}

POLICY_FUNCTION bool edf_shared_queue(const scheduler_t *scheduler)
{
    return scheduler->tunable[EDF_GLOBAL] != 0;
}

POLICY_DEFINITION policy_edf = {
    .name = "edf",
    .meaning = "the earliest deadline first, each task within its runtime in each period",
    .source = "Liu and Layland 1973; Abeni and Buttazzo 1998",
    .order = "The task with the earliest deadline is next; tasks without one run when none waits.",
    .levels = "Level 0 has a runtime reserved in each period, level 1 gets what is left.",
    .level_order = LEVELS_LOWEST_FIRST,
    .remark = "the earliest deadline: {}",
    .remark_kind = REMARK_TIME,
    .cost = COST_LOGARITHMIC,
    .reads = "runtime deadline period",
    .tunables = edf_tunables,
    .tunable_count = sizeof(edf_tunables) / sizeof(edf_tunables[0]),
    .presets = edf_presets,
    .preset_count = sizeof(edf_presets) / sizeof(edf_presets[0]),
    .task_bytes = sizeof(struct edf_task),
    .enqueue = edf_enqueue,
    .dequeue = edf_dequeue,
    .pick = edf_pick,
    .tick = edf_tick,
    .time_slice = edf_time_slice,
    .turn_over = edf_turn_over,
    .alarm = edf_alarm,
    .changed = edf_changed,
    .stopped = edf_stopped,
    .preempts = edf_preempts,
    .place = edf_place,
    .push = edf_push,
    .steal = edf_steal,
    .shared_queue = edf_shared_queue,
};
