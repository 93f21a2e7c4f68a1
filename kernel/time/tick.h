/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_TIME_TICK_H
#define KERNEL_TIME_TICK_H

#include "time/clock.h"
#include "time/timer.h"

/* Once: reads the boot argument `tick`; time begins. */
void clock_init(void);
/* On each CPU: its first tick is the next multiple of the tick's length. */
void tick_init_cpu(void);
/* The timer interrupt: timers that are due, then the tick if it is. */
void tick_interrupt(void);
/* This CPU's next interrupt comes when something is due that was not when it was programmed. */
__attribute__((cold, noinline)) void tick_program(void);
/* This CPU has ticks again, after scheduler_tick() has stopped them. */
void tick_resume(void);

#endif
