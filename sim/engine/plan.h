/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_PLAN_H
#define SIM_ENGINE_PLAN_H

/* When a CPU does something next by itself. */

#include "sim/engine/base.h"
#include "sim/ticking.h"

/* Returns when the CPU's process will have computed; if it is about to act: when it calls the
 * kernel, and then, when the kernel does it. */
static inline uint64_t completion(const struct simulator *simulator, const struct cpu *cpu)
{
    const struct workload_step *step = step_of(simulator, cpu->current);
    uint64_t done = cpu->resumes + (is_computing(step) ? cpu->current->left : 0);
    bool waits = step->kind == STEP_RUN_UNTIL && step->value > done && !cpu->current->killed;
    return waits ? step->value : done;
}

/* Does the CPU's process finish its work, or act, before anything else that is due at `when`? With
 * the end of its turn it does: what it computes until `turn_end` lies within the turn. By the order
 * of textbooks it always does. */
static inline bool acts_first(const struct simulator *simulator, const struct cpu *cpu,
                              uint64_t when)
{
    bool may = simulator->costs.bursts_first || (policy->turn_over && cpu->turn_end <= when);
    return may && cpu->current && !cpu->late && completion(simulator, cpu) <= when;
}

/* Returns when the policy wants to be called, if that is before `when`. In the kernel the CPU hears
 * of it late; a time that has been is now. */
static inline uint64_t policy_time(const struct simulator *simulator, const struct cpu *cpu,
                                   uint64_t when)
{
    uint64_t earliest = cpu->turn_end < cpu->alarm ? cpu->turn_end : cpu->alarm;
    if (earliest == NEVER)
        return when;
    uint64_t possible = simulator->now > cpu->resumes ? simulator->now : cpu->resumes;
    earliest = earliest < possible ? possible : earliest;
    return earliest < when ? earliest : when;
}

/* Notes when the CPU does something next by itself. What its process does after the next tick is
 * noted at that tick: so a process that computes for long costs nothing here. */
static inline void plan(struct simulator *simulator, const struct cpu *cpu)
{
    uint64_t when = NEVER;
    if (cpu->current) {
        uint64_t done = completion(simulator, cpu);
        when = done <= next_tick_of(simulator, cpu) ? done : NEVER;
    }
    if (cpu->reschedule) {
        uint64_t heard = cpu->called > cpu->resumes ? cpu->called : cpu->resumes;
        when = heard < when ? heard : when;
    }
    when = policy_time(simulator, cpu, when);
    if (cpu->late || cpu->calls)
        when = cpu->resumes;
    else if (cpu->due_first != NOBODY && next_tick_of(simulator, cpu) < when)
        when = next_tick_of(simulator, cpu);
    events_set(simulator, cpu->id, when);
}

#endif
