/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_TIME_TICK_H
#define KERNEL_TIME_TICK_H

#include "time/clock.h"
#include "time/timer.h"

/* Called once: reads the boot argument `tick`; time begins. */
void clock_init(void);
/* On each CPU: its first tick is the next multiple of the tick's length. */
void tick_init_cpu(void);
/* The timer interrupt: handles expired timers, then the tick if its time has come. */
void tick_interrupt(void);
/* Programs this CPU's interrupt again for a time that was not known when it was programmed. */
__attribute__((cold, noinline)) void tick_program(void);
/* Restarts this CPU's ticks, after scheduler_tick() has stopped them. */
void tick_resume(void);

#endif
