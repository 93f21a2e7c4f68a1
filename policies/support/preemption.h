/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_PREEMPTION_H
#define SCHEDLAB_PREEMPTION_H

/* Which CPU must be notified that a task was queued, for all hosts. The host decides how and
 * when. */

#include "policies/support/queueing.h"

/* ---- defined by the host ---- */

/* Returns the task that has the CPU, or null if the CPU is idle or the task may not be
 * preempted. */
MECHANISM_FUNCTION const task_t *task_on_cpu(const scheduler_t *scheduler, uint32_t cpu);
/* Returns true if the host runs the task before all tasks that the policy orders. */
MECHANISM_FUNCTION bool task_is_urgent(const task_t *task);
/* Returns true if the CPU is idle and not notified yet, and marks it as notified. */
MECHANISM_FUNCTION bool claim_idle_cpu(const scheduler_t *scheduler, uint32_t cpu);
/* Returns the lowest such CPU that the task may use, or NO_CPU. */
MECHANISM_FUNCTION uint32_t claim_lowest_idle_cpu(const scheduler_t *scheduler, const task_t *task);

/* ---- the CPU to preempt ---- */

/* Returns true if `task` would preempt the task that has the CPU. */
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

/* Returns the CPU that `task`, just queued in the one queue of all CPUs, must preempt, or
 * NO_CPU. Of several it is a CPU whose task the others would preempt, too. */
MECHANISM_FUNCTION uint32_t find_preempted(const struct policy *policy, run_queue_t *queue,
                                           const task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint32_t best = NO_CPU;
    for (uint32_t cpu = (uint32_t)LOOP_START(0); cpu < scheduler->cpus && LOOP_GUARD; cpu++) {
        if (task_preempts(policy, queue, task, cpu) &&
            (best == NO_CPU || task_preempts(policy, queue, task_on_cpu(scheduler, best), cpu)))
            best = cpu;
    }
    return best;
}

/*
 * Returns the CPU to notify of `task`, just queued, or NO_CPU. An idle CPU of its queue should run
 * it, or it should preempt a busy one; else an idle CPU of another queue may take it.
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
