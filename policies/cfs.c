/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * The Completely Fair Scheduler of Linux 2.6.23 to 6.5, as it was in Linux 5.15, the kernel of
 * study 5: the task with the least virtual run time runs next. Virtual run time is the task's run
 * time divided by its load: twice the load, twice the time.
 *
 * Length of a turn. All tasks of a CPU should have one turn within the latency target, in
 * proportion to their loads. If there are more tasks than minimum granularities in the target, the
 * target grows. Only ticks end turns. A turn lasts at least a minimum granularity. It then ends at
 * the first tick where the task ran longer than its part, or leads the next task by more.
 *
 * Entry of a task. Each run queue has a clock, its least virtual run time, which never goes back. A
 * new task starts one turn after the clock. A task that wakes keeps its virtual run time, but is
 * placed at most half a latency target behind the clock. That is its credit for having slept;
 * longer sleep earns no more. A task that wakes or is new preempts if it is a wake-up granularity
 * behind the running task. The clocks of two CPUs are unrelated: a task that moves keeps its
 * distance to the clock.
 *
 * A task that yields lets the next task go first, if that task is not too far ahead.
 *
 * Left out: groups, buddies other than yield's, affine wake-ups, and most load balancing. A CPU
 * takes a task from the CPU with the most load if that makes the two more even. Three equal tasks
 * on two CPUs do not move.
 */

#include "cfs_time.h"
#include "load_cpus.h"
#include "nice_weights.h"
#include "policy.h"

#include "policies/linux_commands.h"

enum { CFS_LATENCY, CFS_GRANULARITY, CFS_WAKEUP, CFS_SLEEPER, CFS_SCALING, CFS_NICE };

static const struct tunable cfs_tunables[] = {
    [CFS_LATENCY] = {"latency_us",
                     "microseconds within which each task of a CPU should have a turn", 1, 6000,
                     10000000},
    [CFS_GRANULARITY] = {"min_granularity_us", "shortest turn, in microseconds", 1, 750, 10000000},
    [CFS_WAKEUP] = {"wakeup_granularity_us",
                    "microseconds that a task must be behind the running task to preempt it", 0,
                    1000, 10000000},
    [CFS_SLEEPER] = {"sleeper_credit",
                     "percent of latency_us that a task may be behind when it wakes", 0, 50, 100},
    [CFS_SCALING] = {"scaling", "1: these times are longer on more CPUs, 4 times on 8 or more", 0,
                     1, 1},
    [CFS_NICE] = {"nice", "1: the nice value decides the load; 0: the weight does", 0, 0, 1},
};

static const struct preset cfs_presets[] = {
    {"nice", "nice values decide the loads, as on Linux", {{"nice", 1}}},
    {"linux", "study 5: the weight, 1 to 10, decides the load", {{NULL, 0}}},
};

POLICY_FUNCTION void cfs_scheduler_init(scheduler_t *scheduler)
{
    cfs_times_t *times = cfs_times_of(scheduler);
    uint64_t factor = 1000; /* of microseconds */
    if (scheduler->tunable[CFS_SCALING] != 0)
        factor *= load_time_factor(scheduler);
    times->latency = (uint64_t)scheduler->tunable[CFS_LATENCY] * factor;
    times->granularity = (uint64_t)scheduler->tunable[CFS_GRANULARITY] * factor;
    times->wakeup = (uint64_t)scheduler->tunable[CFS_WAKEUP] * factor;
    times->credit = times->latency * (uint64_t)scheduler->tunable[CFS_SLEEPER] / 100;
}

POLICY_FUNCTION uint64_t cfs_load(const scheduler_t *scheduler, const task_t *task)
{
    if (scheduler->tunable[CFS_NICE] == 0)
        return (uint64_t)task->weight << 16;
    return nice_weight(task->nice) * CFS_LOAD_USUAL / NICE_WEIGHT_USUAL;
}

/* ---- arrival and departure of tasks ---- */

POLICY_FUNCTION void cfs_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    (void)scheduler;
    cfs_task_t *state = cfs_task_of(task);
    state->charged = task->run_time;
    state->clock_cpu = parent ? cfs_task_of(parent)->clock_cpu : NO_CPU;
    state->virtual_time = parent ? cfs_task_of(parent)->virtual_time : 0;
}

/* Returns the earliest virtual time for a task that enters. */
POLICY_FUNCTION uint64_t cfs_earliest(const run_queue_t *queue, const cfs_task_t *state,
                                      enum enqueue_reason reason)
{
    const cfs_queue_t *all = cfs_queue_of(queue);
    uint64_t tasks = queue->queued + queue->running + 1;
    if (reason == ENQUEUE_WOKEN)
        return all->clock - cfs_times_of(queue->scheduler)->credit;
    if (reason == ENQUEUE_NEW)
        return all->clock +
               cfs_virtual(cfs_slice(queue->scheduler, state->load, tasks, all->sum.load),
                           state->load);
    return state->virtual_time;
}

POLICY_FUNCTION void cfs_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    cfs_queue_t *all = cfs_queue_of(queue);
    cfs_task_t *state = cfs_task_of(task);
    uint64_t load = cfs_load(queue->scheduler, task);
    all->sum.load += load - state->load;
    state->load = load;
    cfs_follow_clock(queue, state);
    uint64_t earliest = cfs_earliest(queue, state, reason);
    if (cfs_is_before(state->virtual_time, earliest))
        state->virtual_time = earliest;
    if (reason == ENQUEUE_YIELDED)
        all->skipped = task;
    task_heap_insert(&all->waiting, task, state->virtual_time);
    cfs_turn_clock(queue);
}

/* Forgets a task that yielded and is no longer queued. */
POLICY_FUNCTION void cfs_forget_yield(cfs_queue_t *all, const task_t *task)
{
    if (all->skipped == task)
        all->skipped = NULL;
}

POLICY_FUNCTION void cfs_dequeue(run_queue_t *queue, task_t *task)
{
    cfs_queue_t *all = cfs_queue_of(queue);
    cfs_task_t *state = cfs_task_of(task);
    task_heap_remove(&all->waiting, task);
    cfs_forget_yield(all, task);
    state->virtual_time -= all->clock;
    state->clock_cpu = NO_CPU;
    all->sum.load -= state->load;
    state->load = 0;
    cfs_turn_clock(queue);
}

/* ---- the task that runs, and the length of its turn ---- */

/* Returns true if `task` is so far behind `other` that it should run instead. Compares virtual
 * times. */
POLICY_FUNCTION bool cfs_is_far_before(const run_queue_t *queue, const task_t *task, uint64_t time,
                                       uint64_t other)
{
    uint64_t far = cfs_virtual(cfs_times_of(queue->scheduler)->wakeup, cfs_task_of(task)->load);
    return (int64_t)(other - time) > (int64_t)far;
}

POLICY_FUNCTION task_t *cfs_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    cfs_queue_t *all = cfs_queue_of(queue);
    task_t *task = all->waiting.first;
    if (!task)
        return NULL;
    task_t *second = task == all->skipped ? task_heap_second(&all->waiting) : NULL;
    if (second && !cfs_is_far_before(queue, task, cfs_task_of(task)->virtual_time,
                                     cfs_task_of(second)->virtual_time))
        task = second;
    task_heap_remove(&all->waiting, task);
    cfs_forget_yield(all, task);
    cfs_task_of(task)->began = task->run_time;
    cfs_task_of(task)->charged_at = queue->now;
    all->running = task;
    queue->remark = cfs_task_of(task)->virtual_time;
    return task;
}

POLICY_FUNCTION enum tick_verdict cfs_tick(run_queue_t *queue, task_t *task)
{
    const cfs_queue_t *all = cfs_queue_of(queue);
    const cfs_task_t *state = cfs_task_of(task);
    cfs_charge(queue, task);
    const task_t *first = all->waiting.first;
    if (!first)
        return TICK_CONTINUE;
    uint64_t slice =
        cfs_slice(queue->scheduler, state->load, queue->queued + queue->running, all->sum.load);
    uint64_t ran = task->run_time - state->began;
    int64_t ahead = (int64_t)(state->virtual_time - cfs_task_of(first)->virtual_time);
    bool may_stop = ran >= cfs_times_of(queue->scheduler)->granularity;
    return ran > slice || (may_stop && ahead > (int64_t)slice) ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION bool cfs_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    const cfs_task_t *other = cfs_task_of(running);
    if (other->load == 0)
        return false;
    uint64_t unpaid = cfs_virtual(queue->now - other->charged_at, other->load);
    return cfs_is_far_before(queue, task, cfs_task_of(task)->virtual_time,
                             other->virtual_time + unpaid);
}

POLICY_FUNCTION void cfs_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    cfs_queue_t *all = cfs_queue_of(queue);
    cfs_charge(queue, task);
    all->running = NULL;
    if (reason == STOP_RUNNABLE)
        return; /* it is queued again at once */
    all->sum.load -= cfs_task_of(task)->load;
    cfs_task_of(task)->load = 0;
    cfs_turn_clock(queue);
}

POLICY_FUNCTION uint64_t cfs_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    const run_queue_t *queue = scheduler->queue[task->cpu < scheduler->queues ? task->cpu : 0];
    uint64_t slice = cfs_slice(scheduler, cfs_load(scheduler, task), queue->queued + queue->running,
                               cfs_queue_of(queue)->sum.load);
    return slice / scheduler->tick_ns + 1;
}

/* ---- several CPUs ---- */

POLICY_FUNCTION task_t *cfs_steal(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = task_heap_first_on(&cfs_queue_of(queue)->waiting, cpu);
    if (!task || !load_move_evens(queue, cfs_task_of(task)->load, cpu))
        return NULL;
    cfs_dequeue(queue, task);
    return task;
}

POLICY_FUNCTION enum share_attribute cfs_shares_by(const scheduler_t *scheduler)
{
    return scheduler->tunable[CFS_NICE] != 0 ? SHARES_BY_NICE : SHARES_BY_WEIGHT;
}

POLICY_DEFINITION policy_cfs = {
    .name = "cfs",
    .meaning = "Linux's scheduler until 6.5: the least virtual run time (run time divided by load)",
    .source = "Molnar 2007, as of Linux 5.15",
    .order = "The task with the least virtual run time is next: its time so far, by its load.",
    .remark = "the least virtual run time: {}",
    .remark_kind = REMARK_TIME,
    .cost = COST_LOGARITHMIC,
    .reads = "weight:nice=0 nice:nice=1",
    .tunables = cfs_tunables,
    .tunable_count = sizeof(cfs_tunables) / sizeof(cfs_tunables[0]),
    .presets = cfs_presets,
    .preset_count = sizeof(cfs_presets) / sizeof(cfs_presets[0]),
    .commands = &linux_commands,
    .rounds = 4,
    .task_bytes = sizeof(struct cfs_task),
    .enqueue = cfs_enqueue,
    .dequeue = cfs_dequeue,
    .pick = cfs_pick,
    .tick = cfs_tick,
    .time_slice = cfs_time_slice,
    .scheduler_init = cfs_scheduler_init,
    .task_init = cfs_task_init,
    .stopped = cfs_stopped,
    .preempts = cfs_preempts,
    .place = load_place,
    .balance = load_balance,
    .steal = cfs_steal,
    .shares_by = cfs_shares_by,
};
