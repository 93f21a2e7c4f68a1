/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_SPEED_H
#define SIM_ENGINE_SPEED_H

/* Changes the speeds of CPUs that are not alike (sim/speeds.h). A machine without a shape calls no
 * function of this file. */

#include "sim/engine/plan.h"
#include "sim/speeds.h"

/* Updates the CPU's speed after a change of its level, or of its busy siblings. */
static void renew_speed(struct simulator *simulator, struct cpu *cpu)
{
    uint32_t *speed = &simulator->speeds->speed[cpu->id];
    uint32_t renewed = speed_now(simulator, cpu->id);
    if (*speed == renewed)
        return;
    if (cpu->current) {
        progress(simulator, cpu);
        change_pace(simulator, cpu->current, *speed, renewed);
    }
    *speed = renewed;
    plan(simulator, cpu);
}

/* Chooses the CPU's level, at a tick or before the CPU gets a process. */
static __attribute__((noinline)) void review_level(struct simulator *simulator, struct cpu *cpu)
{
    struct cpu_place *place = &simulator->speeds->shape.cpu[cpu->id];
    if (!simulator->speeds->model.demand)
        return;
    place->capacity_now = (uint16_t)demanded_capacity(simulator, cpu);
    renew_speed(simulator, cpu);
}

/* Called when an idle CPU is about to get a process, or a busy CPU is about to become idle.
 * `current` still has its old value. */
static void change_busy(struct simulator *simulator, struct cpu *cpu)
{
    struct speeds *speeds = simulator->speeds;
    struct demand *demand = &speeds->demand[cpu->id];
    uint16_t *busy = &speeds->busy[speeds->shape.cpu[cpu->id].core];
    if (cpu->current) {
        demand->busy += simulator->now - demand->busy_from;
        --*busy;
    } else {
        review_level(simulator, cpu);
        demand->busy_from = simulator->now;
        ++*busy;
    }
    for (uint32_t i = speeds->shape.cpu[cpu->id].sibling; i != cpu->id;
         i = speeds->shape.cpu[i].sibling)
        renew_speed(simulator, &simulator->cpus[i]);
}

/* Handles a switch to another process, or to none. The work of a process is counted at full speed
 * while the process is on no CPU. */
static __attribute__((noinline)) void switch_speeds(struct simulator *simulator, struct cpu *cpu,
                                                    struct process *next)
{
    const uint32_t *speed = &simulator->speeds->speed[cpu->id];
    if (cpu->current)
        change_pace(simulator, cpu->current, *speed, SPEED_FULL);
    if (!cpu->current != !next)
        change_busy(simulator, cpu);
    if (next) {
        warm_up(simulator, next, cpu->id);
        change_pace(simulator, next, SPEED_FULL, *speed);
    }
}

#endif
