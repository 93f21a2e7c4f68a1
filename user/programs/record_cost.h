/* SPDX-License-Identifier: MIT */
#ifndef USER_PROGRAMS_RECORD_COST_H
#define USER_PROGRAMS_RECORD_COST_H

/* Measures what a record of the trace costs the machine. */

#include "user/library/user.h"

enum { ROUNDS = 64, CALLS = 16 };

/* What some calls took, in cycles, or `least` if that is less. */
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

/* How long 1,000 cycles are, in picoseconds: 1,000,000 on Spike. Without a call in between, since
 * that ends a step of its clock early. */
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
 * What a record takes, in picoseconds: what a system call that does little but
 * record takes beyond one that does nothing. Told in time, since a cycle is what
 * the machine makes of it, but measured in cycles: Spike's clock moves in steps
 * that hundreds of records fit in. The least of many rounds is one into which no
 * interrupt came, and in which QEMU's host did nothing else. The two calls take
 * turns: a host that is slow for a while is slow for both. Not in it: cold caches,
 * and that blocks leave.
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
