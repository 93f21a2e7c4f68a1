/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_CPU_H
#define SIM_ENGINE_CPU_H

/* The parts of a switch that are the same for every mechanism: counts, records, and the order of
 * the picks of notified CPUs. */

#include "abi/process_info.h"
#include "sim/engine/calls.h"
#include "sim/engine/speed.h"
#include "sim/process.h"

static void end_process(struct simulator *simulator, struct cpu *cpu, int32_t status);

/* Preempts the CPU's process, after the CPU was asked to pick again. */
static inline void preempt(struct simulator *simulator, struct cpu *cpu);

/* Ends a wait, and the process's step. (A process that waits for a child repeats the step, and
 * checks again.) */
static inline void end_wait(struct simulator *simulator, struct process *process)
{
    if (process->waits != WAIT_CHILD)
        advance(simulator, process);
    process->waits = WAIT_NONE;
}

static enum process_state state_left(enum stop_reason stop)
{
    static const enum process_state states[] = {
        [STOP_RUNNABLE] = PROCESS_RUNNABLE,
        [STOP_BLOCKED] = PROCESS_BLOCKED,
        [STOP_ENDED] = PROCESS_ZOMBIE,
    };
    return states[stop];
}

static void count_switch(struct simulator *simulator, struct cpu *cpu, const struct process *next)
{
    simulator->busy += (next != NULL) - (cpu->current != NULL);
    if (next) {
        simulator->counts.switches++;
        simulator->counts.idle_time += cpu->current ? 0 : simulator->now - cpu->idle_since;
    } else {
        simulator->counts.idle_switches++;
        cpu->idle_since = simulator->now;
    }
}

/* Records that the kernel returns to the CPU's process. */
static void record_exit(struct simulator *simulator, struct cpu *cpu)
{
    const struct process *process = cpu->current;
    cpu->records++;
    trace_write(&simulator->trace, cpu->resumes, cpu->id, TRACE_SCHEDULER_EXIT, pid_of(process), 0,
                cpu->resumes);
    if (process && process->task.selections == 1 && !process->killed)
        record_name(simulator, cpu);
}

static void switch_to(struct simulator *simulator, struct cpu *cpu, struct process *next,
                      enum stop_reason stop, bool voluntary)
{
    struct process *previous = cpu->current;
    if (previous && !voluntary)
        record(simulator, cpu->id, TRACE_PREEMPT, previous, cpu->why, 0);
    record(simulator, cpu->id, TRACE_SWITCH, next, pid_of(previous),
           previous ? (uint64_t)state_left(stop) : 0);
    if (simulator->speeds)
        switch_speeds(simulator, cpu, next);
    count_switch(simulator, cpu, next);
    cpu->current = next;
}

static inline bool has_heard(const struct simulator *simulator, const struct cpu *cpu)
{
    return cpu->called <= simulator->now && !in_kernel(simulator, cpu) &&
           !acts_first(simulator, cpu, simulator->now);
}

/*
 * Lets the CPUs that were asked to pick again do so, in order. A CPU that is in the kernel, or not
 * notified yet, plans it for later. When a CPU picks again, a CPU before it may have to pick again,
 * too: because of a process that was expelled, or because of the shared queue's alarm. `acting_cpu`
 * needs no interrupt (NO_CPU: every CPU needs one). A CPU does nothing before its own tick of this
 * moment.
 */
static void settle(struct simulator *simulator, uint32_t acting_cpu)
{
    if (acting_cpu != NO_CPU && simulator->cpus[acting_cpu].reschedule)
        cpu_set_add(&simulator->called, acting_cpu);
    uint32_t ticked = simulator->ticked;
    uint32_t i;
    while ((i = cpu_set_next(&simulator->called, 0, ticked)) != NO_CPU) {
        struct cpu *cpu = &simulator->cpus[i];
        cpu_set_remove(&simulator->called, i);
        if (cpu->reschedule &&
            (i == acting_cpu ? !cpu->late && !cpu->calls : has_heard(simulator, cpu)))
            preempt(simulator, cpu);
        plan(simulator, cpu);
        if (i == acting_cpu)
            acting_cpu = NO_CPU; /* if asked again, it needs an interrupt like the others */
    }
    if (acting_cpu != NO_CPU)
        plan(simulator, &simulator->cpus[acting_cpu]);
}

#endif
