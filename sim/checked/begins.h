/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKED_BEGINS_H
#define SIM_CHECKED_BEGINS_H

/*
 * Start values of the policy's clock and run times, shortly before these numbers wrap around: the
 * clock after about 50 ms, run times after 0.5 ms of the simulation.
 *
 * Each simulation is compared with one whose clock and run times start `apart` ns earlier and so do
 * not wrap. `apart` is a multiple of 4032 s, and thus of the periods of policies, which count from
 * 0. The first row compares with a clock that starts at 0.
 */

#include <stdint.h>

static const struct begin {
    const char *value;
    uint64_t clock, run_time, apart;
} begins[] = {
    {"an hour", 4032000000000, 4032000000000, 4032000000000},
    {"939 x 2^32 ns", 4032924000000, (939ull << 32) - 500000, 4032000000000},
    {"2^32 us", 4294917000000, 4294967296000 - 500000, 4032000000000},
    {"2^63 ns", 9223372036804000000ull, (1ull << 63) - 500000, 9223361280000000000ull},
};

/* If a policy decides differently when numbers wrap, the cause may be that it depends on
 * absolute time in general. To find out, the simulation is repeated with these earlier starts,
 * in eighths of `apart`. There are several, because such a dependence may show rarely, for
 * example through rounding. */
static const uint32_t begin_eighths[] = {4, 2, 6, 1, 3, 5, 7};

#define BEGINS        (sizeof(begins) / sizeof(begins[0]))
#define BEGIN_EIGHTHS (sizeof(begin_eighths) / sizeof(begin_eighths[0]))

#endif
