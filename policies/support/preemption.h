/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_PREEMPTION_H
#define SCHEDLAB_PREEMPTION_H

/* Which CPU hears that a task was queued, for all hosts. How it hears, and when, is the host's. */

#include "policies/support/queueing.h"

/* ---- what the host defines ---- */

/* Returns the task that has the CPU, or null if none has it, or one that may not be preempted. */
MECHANISM_FUNCTION const task_t *task_on_cpu(const scheduler_t *scheduler, uint32_t cpu);
/* Does the host run the task before all that the policy orders? */
MECHANISM_FUNCTION bool task_is_urgent(const task_t *task);
/* Is the CPU idle and not called yet? Then it counts as called. */
MECHANISM_FUNCTION bool claim_idle_cpu(const scheduler_t *scheduler, uint32_t cpu);
/* Returns the lowest such CPU on which the task may run, or NO_CPU if there is none. */
MECHANISM_FUNCTION uint32_t claim_lowest_idle_cpu(const scheduler_t *scheduler, const task_t *task);

/* ---- which CPU gives way ---- */

/* Would `task` take the CPU from the task that has it? */
MECHANISM_FUNCTION bool task_preempts(const struct policy *policy, run_queue_t *queue,
                                      const task_t *task, uint32_t cpu)
{
    const task_t *running = task_on_cpu(queue->scheduler, cpu);
    if (!running || !task_may_run_on(task, cpu))
        return false;
    if (task_is_urgent(task))
        return !task_is_urgent(running);
    return task_is_known(task) && task_is_known(running) &&
           policy_preempts(policy, queue, task, running);
}

/* Returns the CPU that must give way to `task`, just queued in the one queue of all CPUs, or NO_CPU
 * if none must. Of several it is one whose task the others would preempt, too. */
MECHANISM_FUNCTION uint32_t find_preempted(const struct policy *policy, run_queue_t *queue,
                                           const task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint32_t found = NO_CPU;
    for (uint32_t cpu = (uint32_t)LOOP_START(0); cpu < scheduler->cpus && LOOP_GUARD; cpu++) {
        if (task_preempts(policy, queue, task, cpu) &&
            (found == NO_CPU || task_preempts(policy, queue, task_on_cpu(scheduler, found), cpu)))
            found = cpu;
    }
    return found;
}

/*
 * Returns the CPU to be called for `task`, just queued, or NO_CPU if there is none: an idle CPU
 * of its queue should run it, or a busy one give way to it; else an idle CPU of another queue
 * may come and take it.
 */
MECHANISM_FUNCTION uint32_t find_cpu_to_call(const struct policy *policy, run_queue_t *queue,
                                             const task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    bool shared = scheduler->queues == 1;
    bool may_preempt = policy->preempts || task_is_urgent(task);
    if (claim_idle_cpu(scheduler, task->cpu))
        return task->cpu;
    if (!shared && may_preempt && task_preempts(policy, queue, task, task->cpu))
        return task->cpu;
    uint32_t idle = claim_lowest_idle_cpu(scheduler, task);
    if (idle != NO_CPU || !shared || !may_preempt)
        return idle;
    return find_preempted(policy, queue, task);
}

#endif
