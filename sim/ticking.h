/* SPDX-License-Identifier: MIT */
#ifndef SIM_TICKING_H
#define SIM_TICKING_H

#include "sim/machine.h"

/*
 * Computes when each CPU has its next tick, like kernel/time/timer.c.
 *
 * CPUs tick one after the other, in rounds. A round begins with the tick of CPU 0, at a multiple of
 * the tick length. Each other CPU ticks `stagger` ns after the previous CPU.
 *
 * Three fields of the simulator hold the state: `ticking` is the CPU that ticks next, `next_tick`
 * is the time of that tick (ns), and `tick_round` is the time when its round began.
 */

/* Makes `cpu` the CPU that ticks next, in the present round. A number beyond the last CPU ends the
 * round: CPU 0 ticks next. */
static inline void set_next_tick(struct simulator *simulator, uint32_t cpu)
{
    if (cpu >= simulator->scheduler.cpus) {
        simulator->tick_round += simulator->scheduler.tick_ns;
        cpu = 0;
    }
    simulator->ticking = cpu;
    simulator->next_tick = simulator->tick_round + cpu * simulator->stagger;
}

/* Makes the first tick at or after `time` (ns) the next one. */
static inline void seek_tick(struct simulator *simulator, uint64_t time)
{
    uint64_t since_tick = time % simulator->scheduler.tick_ns;
    uint64_t stagger = simulator->stagger;
    uint64_t cpus = simulator->scheduler.cpus;
    uint64_t cpu = stagger ? (since_tick + stagger - 1) / stagger : since_tick ? cpus : 0;
    simulator->tick_round = time - since_tick;
    set_next_tick(simulator, (uint32_t)(cpu < cpus ? cpu : cpus));
}

/* Returns the time (ns) of this CPU's next tick. */
static inline uint64_t next_tick_of(const struct simulator *simulator, const struct cpu *cpu)
{
    uint64_t tick = simulator->tick_round + cpu->id * simulator->stagger;
    return cpu->id < simulator->ticking ? tick + simulator->scheduler.tick_ns : tick;
}

/* Returns true if the CPU's next tick takes place. It is omitted if the CPU was already idle at
 * its last tick, and no process is queued on any CPU. CPU 0 always ticks. */
static inline bool has_ticks(const struct simulator *simulator, const struct cpu *cpu)
{
    return cpu->id == 0 || cpu->current || simulator->queued > 0 ||
           cpu->idle_since + simulator->scheduler.tick_ns >= next_tick_of(simulator, cpu);
}

/* Returns true if expired timers of the CPU must wait until it ticks: it has not ticked yet in a
 * round that has begun. */
static inline bool timers_await_tick(const struct simulator *simulator, const struct cpu *cpu)
{
    return simulator->ticking > 0 && cpu->id >= simulator->ticking && has_ticks(simulator, cpu);
}

#endif
