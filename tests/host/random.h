/* SPDX-License-Identifier: MIT */
#ifndef TESTS_HOST_RANDOM_H
#define TESTS_HOST_RANDOM_H

#include <stdint.h>

/* The seed; never 0. */
static uint64_t random_state = 1;

/*
 * Returns a number from 0 to `limit` - 1, repeatable per seed: xorshift64* (Marsaglia 2003, Vigna
 * 2016).
 */
static uint64_t random_below(uint64_t limit)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 0x2545f4914f6cdd1dull >> 16) % limit;
}

#endif
