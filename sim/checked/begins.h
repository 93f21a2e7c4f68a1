/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKED_BEGINS_H
#define SIM_CHECKED_BEGINS_H

/*
 * Start values of clocks and run times, close to the values where numbers wrap. The clock reaches
 * the wrap about 50 ms after the start, and run times after 0.5 ms. Each run is compared with a run
 * whose clock and run times start `apart` earlier. `apart` is a multiple of 4032 s, so that it is a
 * multiple of a policy's periods, which count from 0. The first row compares with clock 0, where
 * nothing wraps.
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

/* Fractions of `apart`, in eighths, for a policy that decides differently at a wrap. If the policy
 * also decides differently with one of these earlier starts, its decisions depend on absolute time.
 * Such a dependence may show rarely, for example through the rounding of counters, so several
 * starts are tried. */
static const uint32_t begin_eighths[] = {4, 2, 6, 1, 3, 5, 7};

#define BEGINS        (sizeof(begins) / sizeof(begins[0]))
#define BEGIN_EIGHTHS (sizeof(begin_eighths) / sizeof(begin_eighths[0]))

#endif
