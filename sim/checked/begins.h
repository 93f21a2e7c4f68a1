/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKED_BEGINS_H
#define SIM_CHECKED_BEGINS_H

/*
 * Clocks and run times close to where numbers wrap: the clock passes the value about 50 ms after
 * the begin, run times pass it after 0.5 ms. Each run is compared with one whose clock and run
 * times begin `apart` earlier, by a multiple of 4032 s: periods that a policy counts from 0 on
 * divide it. The first row compares with clock 0, and nothing wraps there.
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

/* Parts of `apart` by which a begin is earlier, where a policy is tried that decides otherwise at a
 * wrap. If it does so at one of these, too, it depends on what time it is: rarely, perhaps, as by
 * the rounding of what it has counted, so there are several. */
static const uint32_t begin_eighths[] = {4, 2, 6, 1, 3, 5, 7};

#define BEGINS        (sizeof(begins) / sizeof(begins[0]))
#define BEGIN_EIGHTHS (sizeof(begin_eighths) / sizeof(begin_eighths[0]))

#endif
