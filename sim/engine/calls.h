/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_CALLS_H
#define SIM_ENGINE_CALLS_H

/* Chooses the CPU to notify of a queued process, and the time of the notification, as in
 * kernel/scheduler/scheduler.c. */

#include "sim/engine/queues.h"

#include "policies/support/preemption.h"

/* Notifies a CPU by an interrupt, at the end of the present action of `acting_cpu`, or from
 * outside. */
static inline void interrupt_other(const struct simulator *simulator, uint32_t acting_cpu,
                                   struct cpu *called)
{
    uint64_t sent = acting_cpu == OUTSIDE ? 0 : simulator->cpus[acting_cpu].resumes;
    sent = sent > simulator->now ? sent : simulator->now;
    called->called = sent + simulator->costs.interrupt;
}

/* Asks the CPU to pick again. If there are two reasons, the end of a time slice takes precedence,
 * because it determines where the process is queued. */
static inline void call(struct simulator *simulator, uint32_t acting_cpu, uint32_t cpu,
                        enum preempt_reason why)
{
    struct cpu *called = &simulator->cpus[cpu];
    if (!(called->reschedule && called->why == PREEMPT_SLICE))
        called->why = why;
    if (!called->reschedule && cpu == acting_cpu)
        called->called = simulator->now;
    else if (!called->reschedule)
        interrupt_other(simulator, acting_cpu, called);
    called->reschedule = true;
    cpu_set_add(&simulator->called, cpu);
}

/* ---- required by policies/support/preemption.h ---- */

MECHANISM_FUNCTION const task_t *task_on_cpu(const scheduler_t *scheduler, uint32_t cpu)
{
    const struct process *process = simulator_of(scheduler)->cpus[cpu].current;
    return process ? &process->task : NULL;
}

MECHANISM_FUNCTION bool task_is_urgent(const task_t *task)
{
    return ((const struct process *)task)->urgent;
}

MECHANISM_FUNCTION bool claim_idle_cpu(const scheduler_t *scheduler, uint32_t cpu)
{
    struct cpu_set *idle = &simulator_of(scheduler)->idle;
    if (!cpu_set_has(idle, cpu))
        return false;
    cpu_set_remove(idle, cpu);
    return true;
}

MECHANISM_FUNCTION uint32_t claim_lowest_idle_cpu(const scheduler_t *scheduler, const task_t *task)
{
    struct cpu_set *idle = &simulator_of(scheduler)->idle;
    uint32_t cpu = cpu_set_next(idle, 0, scheduler->cpus);
    while (cpu != NO_CPU && !task_may_run_on(task, cpu))
        cpu = cpu_set_next(idle, cpu + 1, scheduler->cpus);
    if (cpu != NO_CPU)
        cpu_set_remove(idle, cpu);
    return cpu;
}

/* ---- which CPU is notified of a queued process ---- */

/* Notifies a CPU of the queued process: a CPU whose running process should be preempted, or an idle
 * CPU. */
static void announce(struct simulator *simulator, uint32_t acting_cpu, struct run_queue *queue,
                     const struct process *process)
{
    uint32_t cpu = find_cpu_to_call(policy, queue, &process->task);
    if (cpu != NO_CPU)
        call(simulator, acting_cpu, cpu, PREEMPT_WAKEUP);
}

#endif
