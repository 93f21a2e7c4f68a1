/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * For tests of all hosts: time slices in order of arrival, on the best idle CPU. Annotates all that
 * it reads of the machine's shape: once per CPU, and once per pair of CPUs.
 */

#include "policies/near_placement.h"
#include "policies/policy.h"
#include "policies/task_list.h"

struct surveyor_queue {
    struct task_list tasks;
    uint64_t annotation_count; /* annotations so far: first the queue's CPU, then its pairs */
};

POLICY_FUNCTION void surveyor_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    (void)reason;
    task_list_append(&STATE_OF(queue, struct surveyor_queue)->tasks, task);
}

POLICY_FUNCTION void surveyor_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct surveyor_queue)->tasks, task);
}

POLICY_FUNCTION void surveyor_say_of(run_queue_t *queue, task_t *task, uint32_t other)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint32_t cpu = queue->cpu;
    uint32_t shared =
        (share_core(scheduler, cpu, other) ? 2 : 0) + share_cache(scheduler, cpu, other);
    SAY(queue, task, "beside it: {}, distance {}", other << 2 | shared,
        node_distance(scheduler, cpu, other));
}

POLICY_FUNCTION void surveyor_say(run_queue_t *queue, task_t *task, uint32_t cpu)
{
    const scheduler_t *scheduler = queue->scheduler;
    machine_shape_t *shape = scheduler->shape;
    uint64_t levels = shape ? shape->kind[shape->cpu[cpu].kind].levels : 1;
    SAY(queue, task, "CPU: {}, sibling {}",
        levels << 48 | (uint64_t)node_of(scheduler, cpu) << 32 |
            (uint64_t)cpu_capacity(scheduler, cpu) << 16 | cpu_capacity_now(scheduler, cpu),
        next_sibling(scheduler, cpu));
}

POLICY_FUNCTION task_t *surveyor_pick(run_queue_t *queue, uint32_t cpu)
{
    struct surveyor_queue SHARED_MEMORY *state = STATE_OF(queue, struct surveyor_queue);
    task_t *task = task_list_take_first(&state->tasks);
    if (!task || state->annotation_count > queue->scheduler->cpus)
        return task;
    if (state->annotation_count == 0)
        surveyor_say(queue, task, cpu);
    else
        surveyor_say_of(queue, task, (uint32_t)state->annotation_count - 1);
    state->annotation_count++;
    return task;
}

/* Does not annotate: a stealing CPU must not report what the queue's CPU would. */
POLICY_FUNCTION task_t *surveyor_steal(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    return task_list_take_first(&STATE_OF(queue, struct surveyor_queue)->tasks);
}

POLICY_FUNCTION enum tick_verdict surveyor_tick(run_queue_t *queue, task_t *task)
{
    (void)queue, (void)task;
    return TICK_PREEMPT;
}

POLICY_FUNCTION uint64_t surveyor_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler, (void)task;
    return 1;
}

POLICY_FUNCTION uint32_t surveyor_place(const scheduler_t *scheduler, const task_t *task,
                                        enum enqueue_reason reason)
{
    (void)reason;
    return place_near(scheduler, task);
}

POLICY_DEFINITION policy_surveyor = {
    .name = "surveyor",
    .meaning = "round-robin that says what the machine's shape is",
    .source = "a test",
    .order = "The task that came first is next.",
    .speaks = true,
    .enqueue = surveyor_enqueue,
    .dequeue = surveyor_dequeue,
    .pick = surveyor_pick,
    .tick = surveyor_tick,
    .time_slice = surveyor_time_slice,
    .place = surveyor_place,
    .steal = surveyor_steal,
};
