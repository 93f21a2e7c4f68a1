/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_ARRIVALS_H
#define SIM_ENGINE_ARRIVALS_H

/*
 * Processes that arrive at given times, regardless of what runs. The process with the arrival step
 * only waits: arriving processes are forked from outside, and become its children.
 */

#include "abi/cpu_list.h"
#include "policies/support/attributes.h"
#include "sim/engine/family.h"

static void store_attribute(struct simulator *simulator, uint32_t acting_cpu,
                            struct process *process, enum attribute_kind kind, uint64_t value)
{
    record(simulator, acting_cpu, TRACE_ATTRIBUTE, process, kind, value);
    STORE_ATTRIBUTE(&process->task, kind, value);
    simulator->attribute_changes++;
}

/* Sets a process's CPUs. sim/checks.c ensures that the list contains a CPU of the machine. */
static void store_affinity(struct simulator *simulator, uint32_t acting_cpu,
                           struct process *process, const char *list)
{
    struct cpu_set set;
    uint32_t cpus = simulator->scheduler.cpus;
    cpu_list_read(list, set.words);
    uint32_t count = cpu_set_limit(&set, cpus);
    for (uint32_t word = 0; word * 64 < cpus; word++)
        record(simulator, acting_cpu, TRACE_AFFINITY, process, word, set.words[word]);
    cpu_set_give(&process->task, &simulator->cpu_sets[process->task.slot], &set, count, cpus);
    simulator->attribute_changes++;
    simulator->affinity_used |= process->task.cpus != NULL;
}

/* Performs the first steps of an arriving process if they set its own attributes, so that a policy
 * sees the process with these attributes from the beginning. */
static void take_first_attributes(struct simulator *simulator, struct process *process)
{
    const struct workload_step *step;
    while ((step = step_of(simulator, process))->target == WORKLOAD_SELF) {
        if (step->kind == STEP_ATTRIBUTE)
            store_attribute(simulator, OUTSIDE, process, step->detail, step->value);
        else if (step->kind == STEP_AFFINITY)
            store_affinity(simulator, OUTSIDE, process, simulator->texts[step->value]);
        else
            return;
        advance(simulator, process);
    }
}

static inline void enter_interrupt(struct simulator *simulator, struct cpu *cpu)
{
    if (cpu->current)
        progress(simulator, cpu);
    else if (cpu->resumes < simulator->now)
        cpu->resumes = simulator->now;
}

/* Charges the work of what starts an arriving process: a program of the machine, which the workload
 * does not contain. It delays what the first CPU does. */
static void charge_arrival(struct simulator *simulator)
{
    struct cpu *cpu = &simulator->cpus[0];
    if (!simulator->costs.arrival)
        return;
    if (!in_kernel(simulator, cpu))
        enter_interrupt(simulator, cpu);
    cpu->resumes += simulator->costs.arrival;
    plan(simulator, cpu);
}

/* Performs an arrival: forks a child; or adds an item to a channel, as a device's interrupt would;
 * or wakes the process itself. */
static void arrive(struct simulator *simulator, struct process *parent)
{
    const struct workload_step *step = step_of(simulator, parent);
    if (step->detail == ARRIVE_SELF) {
        advance(simulator, parent);
        return;
    }
    if (step->detail == ARRIVE_THING) {
        give(simulator, OUTSIDE, &simulator->channels[step->target], 1, true, NULL);
        advance(simulator, parent);
        return;
    }
    struct process *child = process_create(simulator, NULL, step->target);
    if (!child)
        return;
    child->parent = parent->task.slot;
    child->parent_pid = parent->task.pid;
    child->arrived = true;
    parent->children++;
    record(simulator, OUTSIDE, TRACE_FORK, NULL, pid_of(child), 0);
    take_first_attributes(simulator, child);
    charge_arrival(simulator);
    make_runnable(simulator, OUTSIDE, child, ENQUEUE_NEW, NULL);
    advance(simulator, parent);
}

static bool awaits_arrival(const struct simulator *simulator, const struct process *process)
{
    const struct workload_step *step = step_of(simulator, process);
    return step->kind == STEP_ARRIVE && step->value > simulator->now;
}

static void start_arrival(struct simulator *simulator, struct process *process)
{
    process->link = timer_number_of(simulator->timers.started);
    timers_start_arrival(&simulator->timers, step_of(simulator, process)->value,
                         process->task.slot);
}

/* Handles the next arrival of a parent. The parent continues to wait if more arrivals follow. */
static void arrive_next(struct simulator *simulator)
{
    simulator->now = simulator->timers.heap[0].when;
    struct timer due = timers_take(&simulator->timers);
    struct process *parent = process_at(simulator, timer_slot(&due));
    if (simulator->timers.dead > 0)
        drop_dead_timers(simulator);
    do
        arrive(simulator, parent);
    while (step_of(simulator, parent)->kind == STEP_ARRIVE && !awaits_arrival(simulator, parent) &&
           simulator->status == SIMULATOR_TIME);
    if (awaits_arrival(simulator, parent)) {
        start_arrival(simulator, parent);
        return;
    }
    parent->waits = WAIT_CHILD; /* the parent is now at its next step, which it has not performed */
    make_runnable(simulator, OUTSIDE, parent, ENQUEUE_WOKEN, NULL);
}

/* Records that an arrival was late, because its parent reached the step after the arrival's
 * time. */
static void report_late(struct simulator *simulator, const struct cpu *cpu, uint64_t time)
{
    static const char name[] = "late";
    uint64_t label = 0;
    memcpy(&label, name, sizeof(name) - 1);
    record(simulator, cpu->id, TRACE_MARK, cpu->current, MARK_NAME, label);
    record(simulator, cpu->id, TRACE_MARK, cpu->current, MARK_VALUE, time);
}

static void act_arrive(struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    if (!process->urgent)
        make_urgent(simulator, cpu);
    if (awaits_arrival(simulator, process)) {
        start_arrival(simulator, process);
        block(simulator, cpu, WAIT_TIMER, BLOCK_SLEEP);
        return;
    }
    const struct workload_step *step = step_of(simulator, process);
    uint64_t late = simulator->now - step->value;
    if (late > 0 && step->detail != ARRIVE_SELF)
        report_late(simulator, cpu, late);
    arrive(simulator, process);
}

#endif
