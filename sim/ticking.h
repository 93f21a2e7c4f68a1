/* SPDX-License-Identifier: MIT */
#ifndef SIM_TICKING_H
#define SIM_TICKING_H

#include "sim/machine.h"

/*
 * Computes the times of ticks, as in kernel/time/timer.c. A round begins with the tick of CPU 0, at
 * every multiple of the tick length. Each other CPU ticks `stagger` ns after the CPU before it. CPU
 * `ticking` has the next tick, in the round that begins at `tick_round`.
 */

/* Gives the next tick of this round to a CPU. After the last CPU, the next round begins. */
static inline void set_next_tick(struct simulator *simulator, uint32_t cpu)
{
    if (cpu >= simulator->scheduler.cpus) {
        simulator->tick_round += simulator->scheduler.tick_ns;
        cpu = 0;
    }
    simulator->ticking = cpu;
    simulator->next_tick = simulator->tick_round + cpu * simulator->stagger;
}

/* Finds the first tick at or after `time`. */
static inline void seek_tick(struct simulator *simulator, uint64_t time)
{
    uint64_t since_tick = time % simulator->scheduler.tick_ns;
    uint64_t stagger = simulator->stagger;
    uint64_t cpus = simulator->scheduler.cpus;
    uint64_t cpu = stagger ? (since_tick + stagger - 1) / stagger : since_tick ? cpus : 0;
    simulator->tick_round = time - since_tick;
    set_next_tick(simulator, (uint32_t)(cpu < cpus ? cpu : cpus));
}

static inline uint64_t next_tick_of(const struct simulator *simulator, const struct cpu *cpu)
{
    uint64_t tick = simulator->tick_round + cpu->id * simulator->stagger;
    return cpu->id < simulator->ticking ? tick + simulator->scheduler.tick_ns : tick;
}

/* Returns true if the CPU has ticks. A CPU has no ticks if it was idle at its last tick and no
 * process waited. CPU 0 always has ticks. */
static inline bool has_ticks(const struct simulator *simulator, const struct cpu *cpu)
{
    return cpu->id == 0 || cpu->current || simulator->queued > 0 ||
           cpu->idle_since + simulator->scheduler.tick_ns >= next_tick_of(simulator, cpu);
}

/* Returns true if the CPU's expired timers wait for its tick: between the start of the round and
 * this tick. */
static inline bool timers_await_tick(const struct simulator *simulator, const struct cpu *cpu)
{
    return simulator->ticking > 0 && cpu->id >= simulator->ticking && has_ticks(simulator, cpu);
}

#endif
