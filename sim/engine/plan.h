/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_PLAN_H
#define SIM_ENGINE_PLAN_H

/* When a CPU next acts by itself. */

#include "sim/engine/base.h"
#include "sim/ticking.h"

/* Returns when the CPU's process finishes computing. If it is about to act, returns when it
 * calls the kernel and later when the kernel acts. */
static inline uint64_t completion(const struct simulator *simulator, const struct cpu *cpu)
{
    const struct workload_step *step = step_of(simulator, cpu->current);
    uint64_t done = cpu->resumes + (is_computing(step) ? cpu->current->left : 0);
    bool waits = step->kind == STEP_RUN_UNTIL && step->value > done && !cpu->current->killed;
    return waits ? step->value : done;
}

/* Returns true if the CPU's process finishes its work, or acts, before other events at `when`.
 * That holds at the end of its turn: computing until `turn_end` lies within the turn. In
 * textbook order it always holds. */
static inline bool acts_first(const struct simulator *simulator, const struct cpu *cpu,
                              uint64_t when)
{
    bool may = simulator->costs.bursts_first || (policy->turn_over && cpu->turn_end <= when);
    return may && cpu->current && !cpu->late && completion(simulator, cpu) <= when;
}

/* Returns when the policy must be called, if that is before `when`. In the kernel the CPU
 * notices it late; a past time means now. */
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

/* Records when the CPU next acts by itself. Actions of its process after the next tick are
 * recorded at that tick: so a process that computes for long costs nothing here. */
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
