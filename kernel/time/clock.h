/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_TIME_CLOCK_H
#define KERNEL_TIME_CLOCK_H

#include <stdint.h>

#include "trap/csr.h"

/* Private: converts the hardware's timer to nanoseconds. */
struct clock_base {
    uint64_t boot; /* its value at boot; the machine reads it first (abi/machine_commands.h) */
    uint64_t step; /* nanoseconds from one value to the next */
};
extern struct clock_base clock_base;

/* Nanoseconds since boot, the same on all CPUs. */
static inline uint64_t clock_now(void)
{
    return (csr_read(time) - clock_base.boot) * clock_base.step;
}

/* Returns the first value of the hardware's timer at or after a time in nanoseconds since boot. */
uint64_t clock_hardware(uint64_t ns);
/* This CPU's cycle counter. */
static inline uint64_t clock_cycles(void)
{
    return csr_read(cycle);
}

/* Returns the frequency of the cycle counters. Takes a moment where it must be measured. */
uint64_t clock_cycles_per_second(void);
/* Lets this many nanoseconds pass on this CPU, like work that cannot be interrupted. */
void clock_pass(uint64_t ns);
/* Length of a tick in nanoseconds, and the number of whole ticks since boot. */
uint64_t clock_tick_ns(void);
uint64_t clock_ticks(void);

#endif
