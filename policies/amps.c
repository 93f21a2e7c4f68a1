/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * For CPUs that are not equally fast, after the idea of AMPS (Li, Baumberger, Koufaty and Hahn
 * 2007): fast CPUs first, and each CPU's load in proportion to its speed.
 *
 * A place costs the CPU's load after the move, divided by its speed. A place with a task costs more
 * than any empty place. A task goes to the cheapest place, the nearest of several, when it is
 * forked or woken, and at a tick when it runs alone. So a task of a slow CPU moves as soon as a
 * fast CPU is idle.
 *
 * A hardware thread has `shared` percent of its speed while its core's other threads are busy.
 * Within a queue, tasks take turns as in round-robin.
 */

#include "machine_shape.h"
#include "near_placement.h"
#include "placement.h"
#include "policy.h"
#include "task_list.h"

#define BUSY (1ull << 62)

enum { AMPS_SLICE, AMPS_MOVES, AMPS_SPEEDS, AMPS_SHARED };

static const struct tunable amps_tunables[] = {
    [AMPS_SLICE] = {"slice", "ticks of a task's time slice", 1, 1, 1000},
    [AMPS_MOVES] = {"moves", "1: a task that runs alone moves to a faster idle CPU; 0: it stays", 0,
                    1, 1},
    [AMPS_SPEEDS] = {"speeds", "1: speeds from the machine's shape; 0: all CPUs count as equal", 0,
                     1, 1},
    [AMPS_SHARED] = {"shared", "percent of full speed of a hardware thread while a sibling is busy",
                     1, 60, 100},
};

struct amps_task {
    uint64_t ticks; /* used of the slice */
};

_Static_assert(sizeof(struct amps_task) <= POLICY_TASK_BYTES, "task state fits");

/* ---- the cost of a place ---- */

/* Returns the speed there of a task that has the CPU to itself. */
POLICY_FUNCTION uint32_t amps_speed(const scheduler_t *scheduler, uint32_t cpu)
{
    uint32_t speed = scheduler->tunable[AMPS_SPEEDS] ? cpu_capacity(scheduler, cpu) : CAPACITY_FULL;
    uint32_t sibling = next_sibling(scheduler, cpu);
    if (sibling != cpu && sibling < scheduler->queues && queue_load(scheduler->queue[sibling]) > 0)
        speed = speed * (uint32_t)scheduler->tunable[AMPS_SHARED] / 100;
    return speed > 0 ? speed : 1;
}

/* `load` excludes the task. */
POLICY_FUNCTION uint64_t amps_cost(const scheduler_t *scheduler, uint32_t cpu, uint32_t load)
{
    uint64_t share = (load + 1ull) * 1000 * CAPACITY_FULL / amps_speed(scheduler, cpu);
    return load > 0 ? BUSY + share : share;
}

/* Returns the cheapest place for a task of CPU `home`, whose load without the task is `home_load`.
 */
POLICY_FUNCTION uint32_t amps_cheapest(const scheduler_t *scheduler, const task_t *task,
                                       uint32_t home, uint32_t home_load)
{
    uint32_t best = (uint32_t)LOOP_START(home);
    uint64_t least = LOOP_START(amps_cost(scheduler, home, home_load));
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->queues && LOOP_GUARD; cpu++) {
        uint32_t copy = (uint32_t)LOOP_START(cpu); /* see place_near() */
        if (copy == home || copy >= scheduler->queues || !task_may_run_on(task, copy))
            continue;
        uint64_t cost = amps_cost(scheduler, copy, queue_load(scheduler->queue[copy]));
        if (cost > least || (cost == least && cpu_distance(scheduler, home, copy) >=
                                                  cpu_distance(scheduler, home, best)))
            continue;
        best = (uint32_t)LOOP_START(copy);
        least = LOOP_START(cost);
    }
    return best;
}

POLICY_FUNCTION uint32_t amps_place(const scheduler_t *scheduler, const task_t *task,
                                    enum enqueue_reason reason)
{
    uint32_t home = home_cpu_of(scheduler, task);
    (void)reason;
    return amps_cheapest(scheduler, task, home, queue_load(scheduler->queue[home]));
}

/* Chooses the queue whose last task costs most there, and more there than here. */
POLICY_FUNCTION uint32_t amps_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    uint32_t best = (uint32_t)LOOP_START(NO_CPU);
    uint64_t most = LOOP_START(amps_cost(scheduler, cpu, queue_load(scheduler->queue[cpu])));
    if (!idle && !search_start(scheduler, cpu))
        return NO_CPU;
    for (uint32_t other = LOOP_START(0); other < scheduler->queues && LOOP_GUARD; other++) {
        uint32_t copy = (uint32_t)LOOP_START(other);
        const run_queue_t *queue = scheduler->queue[copy % POLICY_CPUS_MAX];
        uint32_t load = queue_load(queue);
        if (copy == cpu || queue_waiting(queue) == 0 || load < 2)
            continue;
        uint64_t cost = amps_cost(scheduler, copy, load - 1);
        if (cost <= most)
            continue;
        best = (uint32_t)LOOP_START(copy);
        most = LOOP_START(cost);
    }
    return best;
}

/* ---- turns, as in round-robin ---- */

POLICY_FUNCTION void amps_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    task_list_t *tasks = STATE_OF(queue, struct task_list);
    bool goes_on = reason == ENQUEUE_PREEMPTED;
    if (!goes_on)
        STATE_OF(task, struct amps_task)->ticks = 0;
    task_list_insert_before(tasks, task, goes_on ? tasks->first : NULL);
}

POLICY_FUNCTION void amps_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(STATE_OF(queue, struct task_list), task);
}

POLICY_FUNCTION task_t *amps_pick(run_queue_t *queue, uint32_t cpu)
{
    return task_list_take_first_on(STATE_OF(queue, struct task_list), cpu);
}

/* Returns true if the task runs alone, a faster CPU may exist, and there is a better place. */
POLICY_FUNCTION bool amps_moves(const run_queue_t *queue, const task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    return scheduler->tunable[AMPS_MOVES] && queue->queued == 0 &&
           amps_speed(scheduler, queue->cpu) < CAPACITY_FULL &&
           search_start(scheduler, queue->cpu) &&
           amps_cheapest(scheduler, task, queue->cpu, 0) != queue->cpu;
}

POLICY_FUNCTION enum tick_verdict amps_tick(run_queue_t *queue, task_t *task)
{
    struct amps_task SHARED_MEMORY *state = STATE_OF(task, struct amps_task);
    state->ticks++;
    if (amps_moves(queue, task))
        return TICK_MOVE;
    bool over = state->ticks >= (uint64_t)queue->scheduler->tunable[AMPS_SLICE];
    return over ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t amps_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[AMPS_SLICE];
}

POLICY_DEFINITION policy_amps = {
    .name = "amps",
    .meaning = "for CPUs that are not equally fast: load in proportion to speed",
    .source = "Li, Baumberger, Koufaty and Hahn 2007",
    .order = "The task that came first is next.",
    .cost = COST_CONSTANT,
    .reads = "",
    .tunables = amps_tunables,
    .tunable_count = sizeof(amps_tunables) / sizeof(amps_tunables[0]),
    .rounds = 2,
    .task_bytes = sizeof(struct amps_task),
    .enqueue = amps_enqueue,
    .dequeue = amps_dequeue,
    .pick = amps_pick,
    .tick = amps_tick,
    .time_slice = amps_time_slice,
    .place = amps_place,
    .balance = amps_balance,
};
