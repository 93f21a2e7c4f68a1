/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_CFS_TIME_H
#define SCHEDLAB_CFS_TIME_H

#include "load_cpus.h"
#include "policy.h"
#include "task_heap.h"

/*
 * The virtual run time of cfs.c. A task's virtual time is its CPU use divided by its load. A run
 * queue's clock is the least virtual time in it. A load also determines the length of a turn.
 */

/* The load of the default weight, and of nice level 0. */
#define CFS_LOAD_USUAL ((uint64_t)WEIGHT_DEFAULT << 16)

struct cfs_task {
    struct task_heap_node node;
    uint64_t virtual_time; /* relative to the clock of `clock_cpu`; NO_CPU: relative to no
                            * queue's clock */
    uint64_t load;         /* as counted in its queue; 0: not counted */
    uint64_t charged;      /* run_time that is already charged */
    uint64_t charged_at;   /* time of the last charge or pick */
    uint64_t began;        /* run_time when it was picked */
    uint32_t clock_cpu;
};

struct cfs_queue {
    struct load_sum sum; /* of the tasks that are queued or run here */
    struct task_heap waiting;
    task_t *running;
    task_t *skipped; /* yielded and waits; null: none */
    uint64_t clock;
};

/* Nanoseconds. */
struct cfs_times {
    uint64_t latency;
    uint64_t granularity;
    uint64_t wakeup;
    uint64_t credit;
};

_Static_assert(sizeof(struct cfs_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct cfs_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct cfs_task SHARED_MEMORY cfs_task_t;
typedef struct cfs_queue SHARED_MEMORY cfs_queue_t;
typedef struct cfs_times SHARED_MEMORY cfs_times_t;

POLICY_FUNCTION cfs_task_t *cfs_task_of(const task_t *task)
{
    return STATE_OF(task, struct cfs_task);
}

POLICY_FUNCTION cfs_queue_t *cfs_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct cfs_queue);
}

POLICY_FUNCTION cfs_times_t *cfs_times_of(const scheduler_t *scheduler)
{
    return STATE_OF(scheduler, struct cfs_times);
}

/* Returns nanoseconds of virtual time. */
POLICY_FUNCTION uint64_t cfs_virtual(uint64_t ns, uint64_t load)
{
    return ns * CFS_LOAD_USUAL / load;
}

/* Returns the nanoseconds of a turn when `tasks` tasks, this one included, share the CPU with
 * load `total`. */
POLICY_FUNCTION uint64_t cfs_slice(const scheduler_t *scheduler, uint64_t load, uint64_t tasks,
                                   uint64_t total)
{
    const cfs_times_t *times = cfs_times_of(scheduler);
    uint64_t least = tasks * times->granularity;
    uint64_t period = times->latency > least ? times->latency : least;
    uint64_t slice = period * load / (total > load ? total : load);
    return slice > times->granularity ? slice : times->granularity;
}

POLICY_FUNCTION bool cfs_is_before(uint64_t time, uint64_t other)
{
    return (int64_t)(time - other) < 0;
}

/* Advances the clock to the least virtual time here; it never goes back. */
POLICY_FUNCTION void cfs_turn_clock(run_queue_t *queue)
{
    cfs_queue_t *all = cfs_queue_of(queue);
    const task_t *first = all->waiting.first;
    const task_t *running = all->running;
    if (!first && !running)
        return;
    uint64_t least = cfs_task_of(first ? first : running)->virtual_time;
    if (running && cfs_is_before(cfs_task_of(running)->virtual_time, least))
        least = cfs_task_of(running)->virtual_time;
    if (cfs_is_before(all->clock, least))
        all->clock = least;
}

/* Charges the task for its CPU use since the last charge. */
POLICY_FUNCTION void cfs_charge(run_queue_t *queue, task_t *task)
{
    cfs_task_t *state = cfs_task_of(task);
    state->virtual_time += cfs_virtual(task->run_time - state->charged, state->load);
    state->charged = task->run_time;
    state->charged_at = queue->now;
    cfs_turn_clock(queue);
}

/* Makes the task's virtual time relative to this queue's clock. */
POLICY_FUNCTION void cfs_follow_clock(run_queue_t *queue, cfs_task_t *state)
{
    if (state->clock_cpu == queue->cpu)
        return;
    if (state->clock_cpu != NO_CPU)
        state->virtual_time -= cfs_queue_of(queue->scheduler->queue[state->clock_cpu])->clock;
    state->virtual_time += cfs_queue_of(queue)->clock;
    state->clock_cpu = queue->cpu;
}

#endif
