/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_CHANGES_H
#define SIM_ENGINE_CHANGES_H

/* How the policy learns of a changed attribute of a process. */

#include "sim/engine/runnable.h"

/* Prepares a process for a change. If the process is queued, takes it out of the queue and returns
 * true. */
static bool begin_change(struct simulator *simulator, uint32_t acting_cpu, struct process *process)
{
    bool queued = process->place == PLACE_QUEUED;
    if (queued)
        queue_remove(simulator, acting_cpu, queue_of(simulator, process->task.cpu), process);
    return queued;
}

static void end_change(struct simulator *simulator, uint32_t acting_cpu, struct process *process,
                       bool queued)
{
    struct run_queue *queue = queue_of(simulator, process->task.cpu);
    run_queue_changed(policy, queue, &process->task);
    hooks_called(simulator, acting_cpu, queue);
    if (!queued) {
        if (process->place == PLACE_RUNNING)
            call(simulator, acting_cpu, process->task.cpu, PREEMPT_POLICY);
        notify_owner_of_change(simulator, acting_cpu, process);
    } else if (task_may_run_on(&process->task, process->task.cpu)) {
        queue_add(simulator, acting_cpu, queue, process, ENQUEUE_MOVED, NULL);
        announce(simulator, acting_cpu, queue, process);
    } else {
        make_runnable(simulator, acting_cpu, process, ENQUEUE_MOVED, NULL);
    }
}

/* Policies of schedlab expect that all CPUs stay. */
static inline void set_online(struct simulator *simulator, uint32_t cpu, bool online)
{
    fail(simulator, "CPU %u cannot go %s: only schedulers of sched_ext support hotplug", cpu,
         online ? "online" : "offline");
}

/* Policies read groups at their next decision. */
static inline void note_group_change(struct simulator *simulator, uint32_t group, uint32_t field)
{
    (void)simulator;
    (void)group;
    (void)field;
}

#endif
