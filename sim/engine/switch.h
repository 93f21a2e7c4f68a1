/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_SWITCH_H
#define SIM_ENGINE_SWITCH_H

/* The switch to another process, as in kernel/scheduler/scheduler.c. */

#include "sim/engine/cpu.h"
#include "sim/engine/runnable.h"

/* Called when a process has just left its CPU and was queued there. If the process may no longer
 * run on this CPU, or the policy requests a move, takes it out of the queue and returns true. */
static __attribute__((noinline)) bool expel_if_due(struct simulator *simulator,
                                                   struct run_queue *queue, struct cpu *cpu,
                                                   struct process *process)
{
    bool expelled = cpu->moves || !task_may_run_on(&process->task, cpu->id);
    cpu->moves = false;
    if (expelled)
        queue_remove(simulator, cpu->id, queue, process);
    return expelled;
}

/* Takes the process off its CPU. Returns true if the process must be placed again. */
static inline bool leave(struct simulator *simulator, struct run_queue *queue, struct cpu *cpu,
                         enum stop_reason stop, enum enqueue_reason reason)
{
    struct process *process = cpu->current;
    progress(simulator, cpu);
    run_queue_leave(policy, queue, &process->task, stop);
    if (stop != STOP_RUNNABLE) {
        process->place = stop == STOP_BLOCKED ? PLACE_BLOCKED : PLACE_ZOMBIE;
        return false;
    }
    queue_add(simulator, cpu->id, queue, process, reason, NULL);
    return (process->task.cpus || cpu->moves) && expel_if_due(simulator, queue, cpu, process);
}

static inline void enter(struct simulator *simulator, struct run_queue *queue, struct cpu *cpu,
                         struct process *process)
{
    if (process != cpu->current)
        cpu->entered = simulator->now;
    process->place = PLACE_RUNNING;
    run_queue_enter(queue, &process->task);
    if (process->task.cpu != cpu->id) {
        process->task.cpu = cpu->id;
        process->left += simulator->costs.migration;
    }
    simulator->counts.decisions++;
}

/* Notifies an idle CPU that may run `previous`. Called when the CPU has picked a process with a
 * restricted CPU set from the shared queue, and left `previous` in this queue. */
static __attribute__((noinline)) void
call_idle_for(struct simulator *simulator, const struct cpu *cpu, const struct process *previous)
{
    const struct scheduler *scheduler = &simulator->scheduler;
    if (scheduler->queues > 1 || previous->place != PLACE_QUEUED)
        return;
    uint32_t idle = claim_lowest_idle_cpu(scheduler, &previous->task);
    if (idle == NO_CPU)
        return;
    call(simulator, cpu->id, idle, PREEMPT_WAKEUP);
}

/* Picks again. `stop` and `reason` say why the current process leaves the CPU. */
static void reschedule(struct simulator *simulator, struct cpu *cpu, enum stop_reason stop,
                       enum enqueue_reason reason, bool voluntary)
{
    struct process *previous = cpu->current;
    struct run_queue *queue = queue_of(simulator, cpu->id);
    uint64_t begin = cpu->resumes > simulator->now ? cpu->resumes : simulator->now;
    record(simulator, cpu->id, TRACE_SCHEDULER_ENTER, previous, 0, begin);
    cpu->reschedule = false;
    bool expelled = previous && leave(simulator, queue, cpu, stop, reason);
    struct process *next = queue_pick(simulator, queue, cpu->id);
    while (!next && simulator->queued > 0 && queue_pull(simulator, cpu->id, true))
        next = queue_pick(simulator, queue, cpu->id);
    if (next && queue->remark)
        record(simulator, cpu->id, TRACE_DECISION, next, queue->queued, queue->remark);
    cpu->resumes = begin + simulator->costs.scheduler;
    if (simulator->costs.crowd)
        cpu->resumes += queue->queued * simulator->costs.crowd / 100;
    note_turn_end(simulator, cpu, next ? queue->turn_end : 0);
    if (next) {
        enter(simulator, queue, cpu, next);
        cpu_set_remove(&simulator->idle, cpu->id);
    } else {
        cpu_set_add(&simulator->idle, cpu->id);
    }
    if (next != previous) {
        switch_to(simulator, cpu, next, stop, voluntary);
        cpu->resumes += simulator->costs.context_switch;
    }
    if (next && next->task.cpus && previous)
        call_idle_for(simulator, cpu, previous);
    if (expelled)
        make_runnable(simulator, cpu->id, previous, ENQUEUE_MOVED, NULL);
    if (simulator->trace.next)
        record_exit(simulator, cpu);
    if (next && next->task.selections == 1 && simulator->costs.first_run)
        cpu->resumes += simulator->costs.first_run;
}

static inline void preempt(struct simulator *simulator, struct cpu *cpu)
{
    if (!cpu->current)
        reschedule(simulator, cpu, STOP_BLOCKED, ENQUEUE_WOKEN, true);
    else if (cpu->current->killed)
        end_process(simulator, cpu, -1);
    else
        reschedule(simulator, cpu, STOP_RUNNABLE,
                   cpu->why == PREEMPT_SLICE ? ENQUEUE_EXPIRED : ENQUEUE_PREEMPTED, false);
}

#endif
