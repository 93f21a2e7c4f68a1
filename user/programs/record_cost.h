/* SPDX-License-Identifier: MIT */
#ifndef USER_PROGRAMS_RECORD_COST_H
#define USER_PROGRAMS_RECORD_COST_H

/* Measures the machine's cost of a trace record. */

#include "user/library/user.h"

enum { ROUNDS = 64, CALLS = 16 };

/* Returns the cycles of some calls, or `least` if that is less. */
static int64_t least_cycles(void (*call)(void), int64_t least)
{
    int64_t begin = cycles();
    for (int i = 0; i < CALLS; i++)
        call();
    int64_t took = cycles() - begin;
    return took > 0 && took < least ? took : least;
}

static void record_nothing(void)
{
    getpid();
}

static void record_mark(void)
{
    mark(MARK_NOTE, 0);
}

/* Returns the duration of 1,000 cycles, in picoseconds: 1,000,000 on Spike. There is no call in
 * between, since a call ends a step of Spike's clock early. */
static int64_t thousand_cycles(void)
{
    int64_t begin_ns = clock_ns();
    int64_t begin = cycles();
    for (volatile int i = 0; i < 500000; i++) /* some milliseconds */
        ;
    int64_t passed_ns = clock_ns() - begin_ns;
    int64_t passed = cycles() - begin;
    return passed > 0 ? passed_ns * 1000000 / passed : 0;
}

/*
 * Returns the cost of a record, in picoseconds: the time of a system call that does little but
 * record, minus the time of one that does nothing. The result is a time, because a cycle's length
 * depends on the machine. It is measured in cycles, because a step of Spike's clock covers hundreds
 * of records. The minimum of many rounds is one without interrupts, when QEMU's host did nothing
 * else. The two calls alternate: a host that is slow for a while slows both. Excluded: cold caches,
 * and the output of blocks.
 */
static int64_t record_cost(void)
{
    int64_t without = INT64_MAX, with = INT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        without = least_cycles(record_nothing, without);
        with = least_cycles(record_mark, with);
    }
    int64_t cost = (with - without) * thousand_cycles() / 1000 / CALLS;
    return cost > 0 ? cost : 0;
}

#endif
