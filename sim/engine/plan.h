/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_PLAN_H
#define SIM_ENGINE_PLAN_H

/* Computes when a CPU next acts without an interrupt. */

#include "sim/engine/base.h"
#include "sim/ticking.h"

/* Returns when the CPU's process finishes computing. Before an act, this is the time when the
 * process calls the kernel. During the call, it is the time when the kernel acts. */
static inline uint64_t completion(const struct simulator *simulator, const struct cpu *cpu)
{
    const struct workload_step *step = step_of(simulator, cpu->current);
    uint64_t done = cpu->resumes + (is_computing(step) ? cpu->current->left : 0);
    bool waits = step->kind == STEP_RUN_UNTIL && step->value > done && !cpu->current->killed;
    return waits ? step->value : done;
}

/* Returns true if the CPU's process finishes its work, or acts, before other events at `when`. This
 * is true at the end of a time slice, because a computation until `turn_end` is still within the
 * slice. With `bursts_first`, it is always true. */
static inline bool acts_first(const struct simulator *simulator, const struct cpu *cpu,
                              uint64_t when)
{
    bool may = simulator->costs.bursts_first || (policy->turn_over && cpu->turn_end <= when);
    return may && cpu->current && !cpu->late && completion(simulator, cpu) <= when;
}

/* Returns the time of the policy's next call for the end of a turn or an alarm, which is not before
 * the CPU leaves the kernel. Returns `when` if that is earlier. */
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

/* Records when the CPU next acts without an interrupt. An action after the next tick is recorded
 * only at that tick, so a long computation costs nothing here. */
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
