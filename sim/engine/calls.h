/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_CALLS_H
#define SIM_ENGINE_CALLS_H

/* Which CPU hears of a process that was queued, and when, as kernel/scheduler/scheduler.c. */

#include "sim/engine/queues.h"

#include "policies/support/preemption.h"
#include "sim/process.h"

/* An interrupt from another CPU, which sends it at the end of what it does now, or from outside. */
static inline void interrupt_other(const struct simulator *simulator, uint32_t here,
                                   struct cpu *called)
{
    uint64_t sent = here == OUTSIDE ? 0 : simulator->cpus[here].resumes;
    sent = sent > simulator->now ? sent : simulator->now;
    called->called = sent + simulator->costs.interrupt;
}

/* The CPU should pick again. The end of a slice is the better reason: it decides where the process
 * is queued. */
static inline void call(struct simulator *simulator, uint32_t here, uint32_t cpu,
                        enum preempt_reason why)
{
    struct cpu *called = &simulator->cpus[cpu];
    if (!(called->reschedule && called->why == PREEMPT_SLICE))
        called->why = why;
    if (!called->reschedule && cpu == here)
        called->called = simulator->now;
    else if (!called->reschedule)
        interrupt_other(simulator, here, called);
    called->reschedule = true;
    cpu_set_add(&simulator->called, cpu);
}

/* ---- what policies/support/preemption.h asks for ---- */

MECHANISM_FUNCTION const task_t *task_on_cpu(const scheduler_t *scheduler, uint32_t cpu)
{
    const struct process *process = simulator_of(scheduler)->cpus[cpu].current;
    return process ? &process->task : NULL;
}

MECHANISM_FUNCTION bool task_may_run_on(const task_t *task, uint32_t cpu)
{
    (void)task;
    (void)cpu;
    return true;
}

MECHANISM_FUNCTION bool task_is_urgent(const task_t *task)
{
    (void)task;
    return false;
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
    (void)task;
    if (cpu != NO_CPU)
        cpu_set_remove(idle, cpu);
    return cpu;
}

/* ---- which CPU is called for a process that was queued, and queueing itself ---- */

/* The process was queued: the CPU that should run it, or take it, is called. */
static void announce(struct simulator *simulator, uint32_t here, struct run_queue *queue,
                     const struct process *process)
{
    uint32_t cpu = find_cpu_to_call(policy, queue, &process->task);
    if (cpu != NO_CPU)
        call(simulator, here, cpu, PREEMPT_WAKEUP);
}

/* What the process waited for has come: its step is done. (If it waits for a child, it looks
 * again.) */
static inline void end_wait(struct simulator *simulator, struct process *process)
{
    if (process->waits != WAIT_CHILD)
        advance(simulator, process);
    process->waits = WAIT_NONE;
}

/* What the policy keeps of a blocked process in the queue goes before it is in another one. */
static inline void leave_queue(struct simulator *simulator, struct run_queue *queue,
                               struct process *process)
{
    run_queue_forget(policy, queue, &process->task);
    note_alarm(simulator, queue);
}

/* A process is forked by `actor`, or woken: by `actor`, or by an interrupt if that is null. */
static void make_runnable(struct simulator *simulator, uint32_t here, struct process *process,
                          enum enqueue_reason reason, const struct process *actor)
{
    uint32_t from = process->task.cpu;
    uint32_t to = from;
    if (simulator->scheduler.queues > 1)
        to = policy_place(policy, &simulator->scheduler, &process->task, reason);
    if (reason == ENQUEUE_WOKEN) {
        record(simulator, here, TRACE_WAKEUP, process, pid_of(actor), to);
        end_wait(simulator, process);
        if (from != to)
            leave_queue(simulator, queue_of(simulator, from), process);
        if (from != to)
            change_cpu(simulator, here, process, to);
        simulator->counts.wakeups++;
    }
    process->task.cpu = to;
    struct run_queue *queue = queue_of(simulator, to);
    queue_add(simulator, here, queue, process, reason, reason == ENQUEUE_NEW ? actor : NULL);
    announce(simulator, here, queue, process);
}

#endif
