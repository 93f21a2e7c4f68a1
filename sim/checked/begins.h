/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKED_BEGINS_H
#define SIM_CHECKED_BEGINS_H

/*
 * Start values of clocks and run times close to where numbers wrap. The clock passes the value
 * about 50 ms after the start, run times pass it after 0.5 ms. Each run is compared with a run
 * whose clock and run times start `apart` earlier. That is a multiple of 4032 s, so that a policy's
 * periods counted from 0 divide it. The first row compares with clock 0, and nothing wraps there.
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

/* Fractions of `apart` for a policy that decides differently at a wrap. If it also decides
 * differently with one of these earlier starts, it depends on absolute time. That may be rare,
 * for example through the rounding of its counters, so there are several. */
static const uint32_t begin_eighths[] = {4, 2, 6, 1, 3, 5, 7};

#define BEGINS        (sizeof(begins) / sizeof(begins[0]))
#define BEGIN_EIGHTHS (sizeof(begin_eighths) / sizeof(begin_eighths[0]))

#endif
