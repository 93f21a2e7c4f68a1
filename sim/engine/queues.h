/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_QUEUES_H
#define SIM_ENGINE_QUEUES_H

/* Run queues, as kernel/scheduler/run_queue.c. */

#include <string.h>

#include "policies/support/hooks.h"
#include "sim/engine/base.h"

static inline struct run_queue *queue_of(struct simulator *simulator, uint32_t cpu)
{
    struct run_queue *queue = &simulator->queues[simulator->scheduler.queues == 1 ? 0 : cpu];
    queue->now = simulator->now;
    return queue;
}

static inline struct process *process_of(struct task *task)
{
    return (struct process *)task;
}

/* Makes the process known to the policy: a forked one inherits from its parent. */
static void introduce(struct simulator *simulator, struct process *process,
                      const struct process *parent)
{
    memset(process->task.state, 0, simulator->state_bytes);
    process->task.level = 0;
    process->task.next = process->task.previous = NULL;
    policy_init_task(policy, &simulator->scheduler, &process->task,
                     parent && parent->known ? &parent->task : NULL);
    process->known = true;
}

/* Seldom wanted: out of the way of what every decision does. */
static __attribute__((cold, noinline)) void record_queued(struct simulator *simulator,
                                                          uint32_t here,
                                                          const struct run_queue *queue,
                                                          const struct process *process)
{
    record(simulator, here, TRACE_QUEUED, process, queue->cpu, process->task.level);
}

static inline void queue_add(struct simulator *simulator, uint32_t here, struct run_queue *queue,
                             struct process *process, enum enqueue_reason reason,
                             const struct process *parent)
{
    if (!process->known) {
        introduce(simulator, process, parent);
        reason = reason == ENQUEUE_NEW ? reason : ENQUEUE_ADOPTED;
    }
    process->place = PLACE_QUEUED;
    process->task.queued_since = simulator->now;
    policy->enqueue(queue, &process->task, reason);
    queue->queued++;
    simulator->queued++;
    if (simulator->traces_queues)
        record_queued(simulator, here, queue, process);
}

static inline void taken_out(struct simulator *simulator, struct run_queue *queue,
                             struct process *process)
{
    if (process->place != PLACE_QUEUED || queue->queued == 0)
        fail(simulator, "policy %s handed out pid %d, which is not in that queue", policy->name,
             process->task.pid);
    process->place = PLACE_BLOCKED;
    queue->queued--;
    simulator->queued--;
}

static inline struct process *queue_pick(struct simulator *simulator, struct run_queue *queue,
                                         uint32_t cpu)
{
    queue->remark = 0;
    struct task *task = policy->pick(queue, cpu);
    if (!task) {
        if (queue->queued != 0)
            fail(simulator, "policy %s picks nobody, though processes are queued", policy->name);
        return NULL;
    }
    struct process *process = process_of(task);
    taken_out(simulator, queue, process);
    return process;
}

static void change_cpu(struct simulator *simulator, uint32_t here, struct process *process,
                       uint32_t to)
{
    record(simulator, here, TRACE_MIGRATE, process, process->task.cpu, to);
    process->task.cpu = to;
    process->left += simulator->costs.migration;
    simulator->counts.migrations++;
}

/* Moves the process that the policy hands out from one CPU's queue to another's; null: none. */
static struct process *move(struct simulator *simulator, uint32_t here, uint32_t from, uint32_t to)
{
    struct run_queue *queue = queue_of(simulator, from);
    struct task *task = policy_steal(policy, queue, to);
    if (!task)
        return NULL;
    struct process *process = process_of(task);
    taken_out(simulator, queue, process);
    change_cpu(simulator, here, process, to);
    queue_add(simulator, here, queue_of(simulator, to), process, ENQUEUE_MOVED, NULL);
    return process;
}

static struct process *queue_pull(struct simulator *simulator, uint32_t cpu, bool idle)
{
    uint32_t from = policy_balance(policy, &simulator->scheduler, cpu, idle);
    return from == NO_CPU ? NULL : move(simulator, cpu, from, cpu);
}

static bool queue_has_work(struct simulator *simulator, uint32_t cpu)
{
    return simulator->queued > 0 &&
           (queue_of(simulator, cpu)->queued > 0 ||
            policy_balance(policy, &simulator->scheduler, cpu, true) != NO_CPU);
}

#endif
