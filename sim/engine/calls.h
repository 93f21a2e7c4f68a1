/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_CALLS_H
#define SIM_ENGINE_CALLS_H

/* Which CPU hears of a process that was queued, and when, as kernel/scheduler/scheduler.c. */

#include "sim/engine/queues.h"
#include "sim/process.h"

/*
 * An interrupt from another CPU, or from outside. Where traps end turns, it comes at the called
 * CPU's next turn, which is in the same round if its number is higher; and it is passed on to the
 * kernel by another trap, if a process runs there.
 */
static inline void interrupt_other(struct simulator *simulator, uint32_t here, struct cpu *called)
{
    uint64_t turn = simulator->costs.turn;
    uint64_t sent = here == OUTSIDE ? 0 : simulator->cpus[here].resumes;
    sent = sent > simulator->now ? sent : simulator->now;
    bool next_round = here != OUTSIDE && called->id < here;
    uint64_t heard = after_trap(simulator, sent) + (next_round ? turn : 0);
    if (turn && in_kernel(simulator, called)) {
        called->resumes += turn;
        heard = called->resumes;
    } else if (turn && called->current) {
        progress(simulator, called);
        heard += turn + simulator->costs.interrupt;
        called->resumes = heard;
    } else {
        heard += simulator->costs.interrupt;
    }
    called->called = heard;
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

/* Calls the CPU if it is idle and has not been called yet. */
static bool call_idle(struct simulator *simulator, uint32_t here, uint32_t cpu)
{
    if (cpu == NO_CPU || !cpu_set_has(&simulator->idle, cpu))
        return false;
    cpu_set_remove(&simulator->idle, cpu);
    call(simulator, here, cpu, PREEMPT_WAKEUP);
    return true;
}

static bool call_lowest_idle(struct simulator *simulator, uint32_t here)
{
    return call_idle(simulator, here, cpu_set_next(&simulator->idle, 0, simulator->scheduler.cpus));
}

static bool preempts(struct run_queue *queue, const struct process *process,
                     const struct process *running)
{
    return running && running->known &&
           policy_preempts(policy, queue, &process->task, &running->task);
}

/* The CPU that must give way; NO_CPU: none. Of several that a shared queue serves, one whose
 * process the others would preempt too. */
static uint32_t find_preempted(struct simulator *simulator, struct run_queue *queue,
                               const struct process *process)
{
    uint32_t found = NO_CPU;
    if (!policy->preempts)
        return NO_CPU;
    if (simulator->scheduler.queues > 1) {
        uint32_t cpu = process->task.cpu;
        return preempts(queue, process, simulator->cpus[cpu].current) ? cpu : NO_CPU;
    }
    for (uint32_t cpu = 0; cpu < simulator->scheduler.cpus; cpu++) {
        const struct process *running = simulator->cpus[cpu].current;
        if (preempts(queue, process, running) &&
            (found == NO_CPU || preempts(queue, simulator->cpus[found].current, running)))
            found = cpu;
    }
    return found;
}

/*
 * Someone was queued: an idle CPU of the queue should run it, or a busy one give
 * way to it; else an idle CPU of another queue may come and take it.
 */
static void announce(struct simulator *simulator, uint32_t here, struct run_queue *queue,
                     const struct process *process)
{
    bool shared = simulator->scheduler.queues == 1;
    if (call_idle(simulator, here, process->task.cpu) ||
        (shared && call_lowest_idle(simulator, here)))
        return;
    uint32_t preempted = find_preempted(simulator, queue, process);
    if (preempted != NO_CPU)
        call(simulator, here, preempted, PREEMPT_WAKEUP);
    else
        call_lowest_idle(simulator, here);
}

/* What it waited for has come: its step is done. (One that waits for a child looks again.) */
static inline void end_wait(struct simulator *simulator, struct process *process)
{
    if (process->waits != WAIT_CHILD)
        advance(simulator, process);
    process->waits = WAIT_NONE;
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
            change_cpu(simulator, here, process, to);
        simulator->counts.wakeups++;
    }
    process->task.cpu = to;
    struct run_queue *queue = queue_of(simulator, to);
    queue_add(simulator, here, queue, process, reason, reason == ENQUEUE_NEW ? actor : NULL);
    announce(simulator, here, queue, process);
}

#endif
