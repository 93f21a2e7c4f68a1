/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_TIME_CLOCK_H
#define KERNEL_TIME_CLOCK_H

#include <stdint.h>

/* Nanoseconds since boot, the same on all CPUs. */
uint64_t clock_now(void);
/* The first value of the hardware's timer at or after a time in nanoseconds since boot. */
uint64_t clock_hardware(uint64_t ns);
/* This CPU's cycle counter. */
uint64_t clock_cycles(void);
/* Length of a tick in nanoseconds, and the number of whole ticks since boot. */
uint64_t clock_tick_ns(void);
uint64_t clock_ticks(void);

#endif
