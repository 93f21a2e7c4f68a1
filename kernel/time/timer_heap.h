/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_TIME_TIMER_HEAP_H
#define KERNEL_TIME_TIMER_HEAP_H

#include "time/timer.h"

/*
 * A pairing heap of timers (Fredman, Sedgewick, Sleator, Tarjan 1986): the
 * earliest is at the root; of equal ones, the one started first. Null is the
 * empty heap. Insertion is O(1), removal O(log n) amortised.
 */

/* Merges both heaps. Returns the result. */
struct timer *timer_heap_meld(struct timer *a, struct timer *b);
/* Returns the heap without `timer`, which is in it. */
struct timer *timer_heap_remove(struct timer *heap, struct timer *timer);

#endif
