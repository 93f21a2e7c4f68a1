/* SPDX-License-Identifier: MIT */
#ifndef SIM_TIMERS_H
#define SIM_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The timers of sleeping processes, and of arrivals of new processes, sorted by time.
 *
 * They form a heap in an array; each node has four children. Timers with the same time
 * expire in this order: arrivals, then by CPU, then by the time when they were started.
 */
struct timer {
    uint64_t when;
    uint64_t order; /* from the highest bit: 1 bit: ORDER_WAKES; 10 bits: CPU; 29 bits: number of
                     * the start; 24 bits: slot of the process */
};

#define ORDER_CPU_BITS   10
#define ORDER_START_BITS 29
#define ORDER_SLOT_BITS  24

struct timers {
    struct timer *heap;
    uint32_t count;
    /* Number of timers started so far. A timer stores the lower 29 bits, which wrap around. */
    uint32_t started;
    uint32_t dead; /* timers in the heap whose process no longer waits: see drop_dead_timers() */
};

/* This bit is 1 if the timer wakes a process, and 0 if a new process arrives. */
#define ORDER_WAKES (1ull << 63)

#define HEAP_CHILDREN 4

/* Returns the CPU where the process slept; 0 for an arrival. */
static inline uint32_t timer_cpu(const struct timer *timer)
{
    return (uint32_t)(timer->order >> (ORDER_START_BITS + ORDER_SLOT_BITS)) &
           ((1u << ORDER_CPU_BITS) - 1);
}

/* Returns true if the timer is the arrival of a new process. */
static inline bool timer_arrives(const struct timer *timer)
{
    return !(timer->order & ORDER_WAKES);
}

/* Returns the slot of the process that the timer wakes, or the value given for an arrival. */
static inline uint32_t timer_slot(const struct timer *timer)
{
    return (uint32_t)timer->order & ((1u << ORDER_SLOT_BITS) - 1);
}

/* Returns what a timer stores of the number of its starts: the lower 29 bits. */
static inline uint32_t timer_number_of(uint32_t started)
{
    return started & ((1u << ORDER_START_BITS) - 1);
}

static inline uint32_t timer_number(const struct timer *timer)
{
    return timer_number_of((uint32_t)(timer->order >> ORDER_SLOT_BITS));
}

/* Returns true if timer `a` expires before timer `b`. */
static inline bool timer_before(const struct timer *a, const struct timer *b)
{
    if (a->when != b->when)
        return a->when < b->when;
    uint64_t first = a->order >> (ORDER_START_BITS + ORDER_SLOT_BITS);
    uint64_t second = b->order >> (ORDER_START_BITS + ORDER_SLOT_BITS);
    if (first != second)
        return first < second;
    /* The numbers wrap around, so their difference decides, as a signed number of 29 bits. */
    uint32_t later = timer_number(a) - timer_number(b);
    return (int32_t)(later << (32 - ORDER_START_BITS)) < 0;
}

/* Returns the time (ns) of the first timer, or UINT64_MAX if there is none. */
static inline uint64_t timers_next(const struct timers *timers)
{
    return timers->count > 0 ? timers->heap[0].when : UINT64_MAX;
}

/* Returns how many timers the array must hold: one per process, and as many dead ones, because
 * drop_dead_timers() keeps dead timers below half of all timers. */
static inline uint32_t timers_room(uint32_t processes)
{
    return 2 * processes + 2;
}

/* Returns a timer that wakes the process in `slot` at the time `when` (ns). */
static inline struct timer timer_of(uint64_t when, uint32_t cpu, uint32_t started, uint32_t slot)
{
    uint64_t order = (uint64_t)cpu << ORDER_START_BITS | timer_number_of(started);
    return (struct timer){when, ORDER_WAKES | order << ORDER_SLOT_BITS | slot};
}

static inline void timers_add(struct timers *timers, struct timer timer)
{
    uint32_t place = timers->count++;
    while (place > 0) {
        uint32_t parent = (place - 1) / HEAP_CHILDREN;
        if (!timer_before(&timer, &timers->heap[parent]))
            break;
        timers->heap[place] = timers->heap[parent];
        place = parent;
    }
    timers->heap[place] = timer;
}

/* Starts a timer that wakes the process in `slot`, which sleeps on `cpu`, at the time `when`
 * (ns). */
static inline void timers_start(struct timers *timers, uint64_t when, uint32_t cpu, uint32_t slot)
{
    timers_add(timers, timer_of(when, cpu, timers->started++, slot));
}

/* Starts a timer that makes a new process arrive at the time `when` (ns). */
static inline void timers_start_arrival(struct timers *timers, uint64_t when, uint32_t slot)
{
    struct timer timer = timer_of(when, 0, timers->started++, slot);
    timer.order &= ~ORDER_WAKES;
    timers_add(timers, timer);
}

/* Returns the index in the heap of the earliest child of the node at `place`. */
static inline uint32_t timers_first_child(const struct timers *timers, uint32_t place)
{
    uint32_t first = place * HEAP_CHILDREN + 1;
    uint32_t best = first;
    for (uint32_t i = first + 1; i < first + HEAP_CHILDREN && i < timers->count; i++)
        best = timer_before(&timers->heap[i], &timers->heap[best]) ? i : best;
    return best;
}

/* Stores a timer at `place`, or further down in the heap if timers there expire earlier. */
static inline void timers_sink(struct timers *timers, uint32_t place, struct timer timer)
{
    while (place * HEAP_CHILDREN + 1 < timers->count) {
        uint32_t child = timers_first_child(timers, place);
        if (!timer_before(&timers->heap[child], &timer))
            break;
        timers->heap[place] = timers->heap[child];
        place = child;
    }
    timers->heap[place] = timer;
}

/* Removes and returns the first timer. The heap must not be empty. */
static inline struct timer timers_take(struct timers *timers)
{
    struct timer taken = timers->heap[0];
    struct timer last = timers->heap[--timers->count];
    timers_sink(timers, 0, last);
    return taken;
}

/* Makes a heap of timers that are in any order (Floyd, 1964). */
static inline void timers_order(struct timers *timers)
{
    for (uint32_t place = timers->count / HEAP_CHILDREN + 1; place > 0; place--) {
        if (place <= timers->count)
            timers_sink(timers, place - 1, timers->heap[place - 1]);
    }
}

#endif
