/* SPDX-License-Identifier: MIT */
#ifndef SIM_SPEEDS_H
#define SIM_SPEEDS_H

#include "sim/machine.h"

#include "policies/support/shape_text.h"

/*
 * How fast processes compute on a machine whose CPUs are not alike. Work is counted in
 * units, of which the fastest CPU, by itself, does SPEED_FULL in a nanosecond; every speed
 * is a whole number of them, so that all is exact.
 *
 * Of a process that computes on a CPU of speed v, `left` is nanoseconds on that CPU, and it
 * has v * left - ahead units of work before it; of all others v is SPEED_FULL. So what
 * happens at each tick knows nothing of speeds: `left` is counted anew where the speed
 * changes. `ahead` is less than v: the part of a nanosecond that a process has computed
 * ahead when its step ends is taken off its next one, and nothing is lost.
 */

#define SPEED_FULL  (CAPACITY_FULL * SPEED_WHOLE)
#define RAN_NOWHERE UINT32_MAX

struct pace {
    uint64_t warm; /* ns of work: while more is left of its step, that is for a cold cache */
    uint32_t cold; /* ns of work for which its next step to compute takes longer */
    uint32_t ahead;
    uint32_t ran_on; /* the CPU on which it ran last; RAN_NOWHERE */
};

/* What a CPU had to do since its level was chosen last. */
struct demand {
    uint64_t since;
    uint64_t busy;      /* ns with a process, until `busy_from` */
    uint64_t busy_from; /* if it has one: since when, or since the level was chosen */
};

struct speeds {
    struct machine_shape shape;
    struct shape_model model;
    uint32_t speed[POLICY_CPUS_MAX]; /* by CPU: units of work in a nanosecond */
    uint16_t busy[POLICY_CPUS_MAX];  /* by core: its CPUs that have a process */
    struct demand demand[POLICY_CPUS_MAX];
    struct pace *paces; /* by slot */
};

/* Reads the shape; for a machine that has been laid out with room for it. */
bool begin_speeds(struct simulator *simulator, const char *text, struct simulator_error *error);
/* Returns what the CPU does in a nanosecond at its level, beside the siblings that are busy. */
uint32_t speed_now(const struct simulator *simulator, uint32_t cpu);
/* The process, which computes, does so at another speed from now on, or is about to, or was. */
void change_pace(const struct simulator *simulator, struct process *process, uint32_t from,
                 uint32_t to);
/* The process begins a step. */
void begin_pace(const struct simulator *simulator, struct process *process);
/* The process, which computes at full speed as far as `left` says, gets this CPU: it computes
 * longer, now or in its next step that does, for what it finds in no cache. What it would still
 * have computed for that on its CPU of before, it does not. */
void warm_up(const struct simulator *simulator, struct process *process, uint32_t cpu);
/* Returns the CPU's level by what it had to do since the last time: the lowest that does it with a
 * quarter to spare, in units of capacity. */
uint32_t demanded_capacity(struct simulator *simulator, const struct cpu *cpu);

#endif
