/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_RUNNABLE_H
#define SIM_ENGINE_RUNNABLE_H

/* How a process becomes runnable, as in kernel/scheduler/placing.c. */

#include "sim/engine/cpu.h"
#include "sim/engine/owners.h"

/* Discards the policy's data about a blocked process in its queue before it joins another queue. */
static inline void leave_queue(struct simulator *simulator, uint32_t acting_cpu,
                               struct run_queue *queue, struct process *process)
{
    run_queue_forget(policy, queue, &process->task);
    hooks_called(simulator, acting_cpu, queue);
}

/* Makes a process runnable that was forked by `actor`, or woken by `actor` (null: by an interrupt).
 * Also moves a process that may no longer run on its CPU. */
static void make_runnable(struct simulator *simulator, uint32_t acting_cpu, struct process *process,
                          enum enqueue_reason reason, const struct process *actor)
{
    uint32_t from = process->task.cpu;
    uint32_t to = policy_place(policy, &simulator->scheduler, &process->task, reason);
    if (reason == ENQUEUE_WOKEN) {
        process->task.waker = (int32_t)pid_of(actor);
        process->task.waker_cpu = acting_cpu;
        name_owner(simulator, acting_cpu, process, NULL);
        record(simulator, acting_cpu, TRACE_WAKEUP, process, pid_of(actor), to);
        end_wait(simulator, process);
        if (from != to)
            leave_queue(simulator, acting_cpu, queue_of(simulator, from), process);
        simulator->counts.wakeups++;
    }
    if (from != to && reason != ENQUEUE_NEW)
        change_cpu(simulator, acting_cpu, process, to);
    process->task.cpu = to;
    struct run_queue *queue = queue_of(simulator, to);
    queue_add(simulator, acting_cpu, queue, process, reason, reason == ENQUEUE_NEW ? actor : NULL);
    announce(simulator, acting_cpu, queue, process);
}

#endif
