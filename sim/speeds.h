/* SPDX-License-Identifier: MIT */
#ifndef SIM_SPEEDS_H
#define SIM_SPEEDS_H

#include "sim/machine.h"

#include "policies/support/shape_text.h"

/*
 * The speed of processes on a machine whose CPUs are not alike. Work is counted in units. The
 * fastest CPU does SPEED_FULL units in a nanosecond if the other CPUs of its core are idle. Every
 * speed is a whole number of units, so that all results are exact.
 *
 * If a process computes on a CPU of speed v, its `left` is in nanoseconds on this CPU, and its
 * remaining work is v * left - ahead units. For all other processes, v is SPEED_FULL. `left` is
 * recomputed when the speed changes, so the code of each tick does not depend on speeds. `ahead` is
 * less than v: when a step ends, the process may have computed a fraction of a nanosecond too much.
 * This fraction is subtracted from its next step, so that no work is lost.
 */

#define SPEED_FULL  (CAPACITY_FULL * SPEED_WHOLE)
#define RAN_NOWHERE UINT32_MAX

struct pace {
    uint64_t warm; /* ns of work; if more remains of the step, the excess is for a cold cache */
    uint32_t cold; /* extra ns of work in the next computing step */
    uint32_t ahead;
    uint32_t ran_on; /* the CPU where the process last ran, or RAN_NOWHERE */
};

/* The work of a CPU since its level was last chosen. */
struct demand {
    uint64_t since;
    uint64_t busy;      /* ns during which the CPU had a process, until `busy_from` */
    uint64_t busy_from; /* if the CPU has a process: when it got the process, or when the level was
                         * chosen */
};

struct speeds {
    struct machine_shape shape;
    struct shape_model model;
    uint32_t speed[POLICY_CPUS_MAX]; /* by CPU: units of work in a nanosecond */
    uint16_t busy[POLICY_CPUS_MAX];  /* by core: number of its CPUs that have a process */
    struct demand demand[POLICY_CPUS_MAX];
    struct pace *paces; /* by slot */
};

/* Parses the shape. The machine must have reserved memory for it. */
bool begin_speeds(struct simulator *simulator, const char *text, struct simulator_error *error);
/* Returns the CPU's units of work in a nanosecond at its level, given the busy siblings. */
uint32_t speed_now(const struct simulator *simulator, uint32_t cpu);
/* Changes the speed of a process that computes, is about to compute, or has just computed. */
void change_pace(const struct simulator *simulator, struct process *process, uint32_t from,
                 uint32_t to);
/* Updates a process's computing time when the process begins a step. */
void begin_pace(const struct simulator *simulator, struct process *process);
/* Gives a CPU to a process whose `left` is counted at full speed. If the caches are cold, adds
 * extra work to this computing step or the next one. Remaining extra work from the previous CPU is
 * dropped. */
void warm_up(const struct simulator *simulator, struct process *process, uint32_t cpu);
/* Returns the capacity of the level that the CPU should have: the lowest level that leaves a
 * quarter of its capacity unused by the work since the last call. */
uint32_t demanded_capacity(struct simulator *simulator, const struct cpu *cpu);

#endif
