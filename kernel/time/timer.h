/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_TIME_TIMER_H
#define KERNEL_TIME_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Calls a function once, at or after a time, on the CPU that started the timer,
 * in its interrupt handler, with no lock held. Timers of one CPU that expire
 * together run in the order of their times, then of their starts.
 */
struct timer {
    uint64_t when; /* nanoseconds since boot */
    void (*expired)(struct timer *timer);
    /* private: a pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986) */
    uint64_t order;
    struct cpu *cpu; /* where it was last started */
    bool pending;    /* started, and neither expired nor cancelled */
    struct timer *child;
    struct timer *sibling;
    struct timer *previous;
};

void timer_start(struct timer *timer, uint64_t when, void (*expired)(struct timer *timer));
/* Returns true if it will not expire any more, or false if it has expired or was not started. */
bool timer_cancel(struct timer *timer);

#endif
