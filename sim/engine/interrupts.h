/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_INTERRUPTS_H
#define SIM_ENGINE_INTERRUPTS_H

/* Interrupts of the timer, as in kernel/time/timer.c. The mechanism defines tick() and
 * expire_policy_times(). */

#include "sim/engine/acts.h"

/* Removes the CPU's expired timers from the start of the heap. */
static inline void take_due(struct simulator *simulator, struct cpu *cpu)
{
    struct timers *timers = &simulator->timers;
    while (timers->count > 0 && timers->heap[0].when <= simulator->now &&
           timer_cpu(&timers->heap[0]) == cpu->id) {
        struct timer due = timers_take(timers);
        uint32_t slot = timer_slot(&due);
        process_at(simulator, slot)->link = NOBODY;
        process_at(simulator, slot)->waits = WAIT_DUE;
        if (timers->dead > 0)
            drop_dead_timers(simulator);
        if (cpu->due_first == NOBODY)
            cpu->due_first = slot;
        else
            process_at(simulator, cpu->due_last)->link = slot;
        cpu->due_last = slot;
    }
}

static inline void wake_due(struct simulator *simulator, struct cpu *cpu)
{
    while (cpu->due_first != NOBODY) {
        struct process *process = process_at(simulator, cpu->due_first);
        cpu->due_first = process->link;
        make_runnable(simulator, cpu->id, process, ENQUEUE_WOKEN, NULL);
        cpu->resumes += simulator->costs.wakeup;
    }
}

/* Handles the CPU's expired timers, and its tick if the tick's time is reached. If the CPU is in
 * the kernel, this happens when the CPU leaves the kernel. */
static inline void interrupt(struct simulator *simulator, struct cpu *cpu, bool with_tick)
{
    take_due(simulator, cpu);
    if (in_kernel(simulator, cpu)) {
        cpu->late = true;
        cpu->late_tick |= with_tick;
    } else {
        enter_interrupt(simulator, cpu);
        wake_due(simulator, cpu);
        expire_policy_times(simulator, cpu);
        if (with_tick || cpu->late_tick)
            tick(simulator, cpu);
        cpu->late = cpu->late_tick = false;
    }
}

#endif
