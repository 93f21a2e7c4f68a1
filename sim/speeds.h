/* SPDX-License-Identifier: MIT */
#ifndef SIM_SPEEDS_H
#define SIM_SPEEDS_H

#include "sim/machine.h"

#include "policies/support/shape_text.h"

/*
 * The speed of processes on a machine whose CPUs are not alike. Work is counted in units; the
 * fastest CPU, alone on its core, does SPEED_FULL of them in a nanosecond. Every speed is a whole
 * number of units, so that all results are exact.
 *
 * A process may compute on a CPU of speed v. Then `left` is in nanoseconds on that CPU, and its
 * remaining work is v * left - ahead units. For all other processes v is SPEED_FULL. So the code of
 * each tick does not depend on speeds: `left` is recomputed where the speed changes. `ahead` is
 * less than v. A process may have computed a fraction of a nanosecond ahead when its step ends.
 * That is subtracted from its next step, so that nothing is lost.
 */

#define SPEED_FULL  (CAPACITY_FULL * SPEED_WHOLE)
#define RAN_NOWHERE UINT32_MAX

struct pace {
    uint64_t warm; /* ns of work: while more remains of its step, the excess is for a cold cache */
    uint32_t cold; /* extra ns of work of its next computing step */
    uint32_t ahead;
    uint32_t ran_on; /* the CPU where it last ran; RAN_NOWHERE */
};

/* The work of a CPU since its level was last chosen. */
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

/* Reads the shape, for a machine whose memory for it is laid out. */
bool begin_speeds(struct simulator *simulator, const char *text, struct simulator_error *error);
/* Returns the CPU's units of work in a nanosecond at its level, given the busy siblings. */
uint32_t speed_now(const struct simulator *simulator, uint32_t cpu);
/* Changes the speed of the process, which computes, is about to compute, or was computing. */
void change_pace(const struct simulator *simulator, struct process *process, uint32_t from,
                 uint32_t to);
/* The process begins a step. */
void begin_pace(const struct simulator *simulator, struct process *process);
/* Gives this CPU to a process whose `left` is counted at full speed. It computes longer, now or
 * in its next computing step, because of cold caches. Its remaining extra work for the previous
 * CPU is dropped. */
void warm_up(const struct simulator *simulator, struct process *process, uint32_t cpu);
/* Returns the CPU's level according to its work since the last call: the lowest level that does
 * this work with a quarter to spare, in units of capacity. */
uint32_t demanded_capacity(struct simulator *simulator, const struct cpu *cpu);

#endif
