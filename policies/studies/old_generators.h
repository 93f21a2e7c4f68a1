/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_OLD_GENERATORS_H
#define SCHEDLAB_OLD_GENERATORS_H

#include "policies/policy.h"
#include "policies/random.h"

/* Generators of random numbers that studies used: narrow, and far from random. */

/*
 * A linear congruential generator (Lehmer 1951) with the constants of the example in
 * the C standard (1989): 15 bits, so it never draws a number above 32,767.
 */
POLICY_FUNCTION uint64_t random_lcg(random_state_t *state)
{
    *state = (*state * 1103515245 + 12345) & 0xffffffff;
    return *state >> 16 & 0x7fff;
}

/*
 * A 16-bit linear-feedback shift register (Golomb 1967) with the taps 16, 14, 13 and
 * 11, stepped once a number: 1 to 65,535, each once in a period. A number is half of the
 * one before, plus 32,768 or not: two that follow each other are far from independent.
 */
POLICY_FUNCTION uint64_t random_lfsr16(random_state_t *state)
{
    uint64_t value = *state & 0xffff;
    if (value == 0)
        value = 0xace1; /* 0 would stay 0 */
    uint64_t bit = (value ^ (value >> 2) ^ (value >> 3) ^ (value >> 5)) & 1;
    *state = value >> 1 | bit << 15;
    return *state;
}

#endif
