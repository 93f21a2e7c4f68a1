/* SPDX-License-Identifier: MIT */
#ifndef SIM_TIMERS_H
#define SIM_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The timers of sleeping processes, as a heap in an array. Each node has four children. Timers with
 * the same time are ordered: arrivals first, then by CPU, then by the order of their starts.
 */
struct timer {
    uint64_t when;
    uint64_t order; /* 1 bit: 0 for an arrival; 10 bits: CPU; 29 bits: start, which wraps; 24 bits:
                     * slot */
};

#define ORDER_CPU_BITS   10
#define ORDER_START_BITS 29
#define ORDER_SLOT_BITS  24

struct timers {
    struct timer *heap;
    uint32_t count;
    uint32_t started;
    uint32_t dead; /* timers in the heap that no process waits for: see drop_dead_timers() */
};

#define ORDER_WAKES (1ull << 63) /* the timer wakes a process on a CPU; it is not an arrival */

#define HEAP_CHILDREN 4

static inline uint32_t timer_cpu(const struct timer *timer)
{
    return (uint32_t)(timer->order >> (ORDER_START_BITS + ORDER_SLOT_BITS)) &
           ((1u << ORDER_CPU_BITS) - 1);
}

static inline bool timer_arrives(const struct timer *timer)
{
    return !(timer->order & ORDER_WAKES);
}

static inline uint32_t timer_slot(const struct timer *timer)
{
    return (uint32_t)timer->order & ((1u << ORDER_SLOT_BITS) - 1);
}

/* Returns the number of a start, reduced to the bits that a timer has for this number. */
static inline uint32_t timer_number_of(uint32_t started)
{
    return started & ((1u << ORDER_START_BITS) - 1);
}

static inline uint32_t timer_number(const struct timer *timer)
{
    return timer_number_of((uint32_t)(timer->order >> ORDER_SLOT_BITS));
}

static inline bool timer_before(const struct timer *a, const struct timer *b)
{
    if (a->when != b->when)
        return a->when < b->when;
    uint64_t first = a->order >> (ORDER_START_BITS + ORDER_SLOT_BITS);
    uint64_t second = b->order >> (ORDER_START_BITS + ORDER_SLOT_BITS);
    if (first != second)
        return first < second;
    uint32_t later = timer_number(a) - timer_number(b); /* compares the lower 29 bits */
    return (int32_t)(later << (32 - ORDER_START_BITS)) < 0;
}

static inline uint64_t timers_next(const struct timers *timers)
{
    return timers->count > 0 ? timers->heap[0].when : UINT64_MAX;
}

/* Returns the maximum number of timers: one for each process, and as many dead timers, because
 * drop_dead_timers() limits dead timers to half of all timers. */
static inline uint32_t timers_room(uint32_t processes)
{
    return 2 * processes + 2;
}

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

static inline void timers_start(struct timers *timers, uint64_t when, uint32_t cpu, uint32_t slot)
{
    timers_add(timers, timer_of(when, cpu, timers->started++, slot));
}

static inline void timers_start_arrival(struct timers *timers, uint64_t when, uint32_t slot)
{
    struct timer timer = timer_of(when, 0, timers->started++, slot);
    timer.order &= ~ORDER_WAKES;
    timers_add(timers, timer);
}

static inline uint32_t timers_first_child(const struct timers *timers, uint32_t place)
{
    uint32_t first = place * HEAP_CHILDREN + 1;
    uint32_t best = first;
    for (uint32_t i = first + 1; i < first + HEAP_CHILDREN && i < timers->count; i++)
        best = timer_before(&timers->heap[i], &timers->heap[best]) ? i : best;
    return best;
}

/* Puts the timer into `place`, or below it if the heap order requires it. */
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

/* Takes out the first timer. The heap must not be empty. */
static inline struct timer timers_take(struct timers *timers)
{
    struct timer taken = timers->heap[0];
    struct timer last = timers->heap[--timers->count];
    timers_sink(timers, 0, last);
    return taken;
}

/* Makes a heap of timers in any order (Floyd 1964). */
static inline void timers_order(struct timers *timers)
{
    for (uint32_t place = timers->count / HEAP_CHILDREN + 1; place > 0; place--) {
        if (place <= timers->count)
            timers_sink(timers, place - 1, timers->heap[place - 1]);
    }
}

#endif
