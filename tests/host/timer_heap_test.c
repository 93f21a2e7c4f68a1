/* SPDX-License-Identifier: MIT */

/* Compares the heap of timers with a sorted array, with seeded random operations. */

#include <string.h>

#include "kernel/time/timer_heap.c"

#include "check.h"

#define TIMERS 500

static struct timer timers[TIMERS];
static struct timer *heap;
static uint64_t next_order;
static unsigned random_state = 12345;

static unsigned random_below(unsigned limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % limit;
}

/* Returns the timer that must be first, by a search of all timers. */
static struct timer *earliest(void)
{
    struct timer *best = NULL;
    for (int i = 0; i < TIMERS; i++) {
        struct timer *timer = &timers[i];
        if (timer->pending && (!best || timer->when < best->when ||
                               (timer->when == best->when && timer->order < best->order)))
            best = timer;
    }
    return best;
}

static void insert(struct timer *timer)
{
    *timer = (struct timer){.when = random_below(50), .order = next_order++, .pending = true};
    heap = timer_heap_meld(heap, timer);
}

static void take_out(struct timer *timer)
{
    heap = timer_heap_remove(heap, timer);
    timer->pending = false;
}

static void random_operations_keep_the_earliest_first(void)
{
    for (int step = 0; step < 50000; step++) {
        struct timer *timer = &timers[random_below(TIMERS)];
        if (!timer->pending)
            insert(timer);
        else if (random_below(2))
            take_out(timer);
        else
            take_out(heap);
        check(heap == earliest());
    }
}

static void equal_times_expire_in_the_order_of_their_starts(void)
{
    while (heap)
        take_out(heap);
    for (int i = 0; i < TIMERS; i++) {
        timers[i] = (struct timer){.when = 7, .order = (uint64_t)i, .pending = true};
        heap = timer_heap_meld(heap, &timers[i]);
    }
    for (int i = 0; i < TIMERS; i++) {
        check(heap == &timers[i]);
        take_out(heap);
    }
    check(!heap);
}

int main(void)
{
    run_test(random_operations_keep_the_earliest_first);
    run_test(equal_times_expire_in_the_order_of_their_starts);
    return 0;
}
