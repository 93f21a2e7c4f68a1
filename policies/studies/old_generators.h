/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_OLD_GENERATORS_H
#define SCHEDLAB_OLD_GENERATORS_H

#include "policies/policy.h"
#include "policies/random.h"

/*
 * Random number generators of the studies, with a narrower range than policies/random.h. No study
 * has as many tickets as its generator has numbers. With more tickets, the functions below let the
 * later tickets win, too.
 */

#define XORSHIFT31_RANGE (1ull << 31)
#define LFSR16_RANGE     65535ull

/*
 * 31 bits of a 32-bit xorshift (Marsaglia 2003) with the shifts 13, 17 and 5: a number from 0
 * to 2^31 - 1.
 */
POLICY_FUNCTION uint64_t random_xorshift31(random_state_t *state)
{
    uint32_t value = (uint32_t)*state;
    if (value == 0)
        value = 1; /* 0 would stay 0 */
    value ^= value << 13;
    value ^= value >> 17;
    value ^= value << 5;
    *state = value;
    return value & (XORSHIFT31_RANGE - 1);
}

/*
 * Returns a number below `limit`, uniformly distributed: numbers at or above the largest multiple
 * of the limit are drawn again. A limit beyond the generator's range combines two numbers into one
 * of 62 bits.
 */
POLICY_FUNCTION uint64_t random_xorshift31_below(random_state_t *state, uint64_t limit)
{
    uint64_t number = random_xorshift31(state);
    if (limit > XORSHIFT31_RANGE)
        return (number * XORSHIFT31_RANGE + random_xorshift31(state)) % limit;
    uint64_t end = XORSHIFT31_RANGE - XORSHIFT31_RANGE % limit;
    while (number >= end && LOOP_GUARD)
        number = random_xorshift31(state);
    return number % limit;
}

/*
 * A 16-bit linear-feedback shift register (Golomb 1967) with the taps 16, 14, 13 and 11, stepped
 * once a number: 1 to 65,535, each once in a period. A number is half of the previous number, plus
 * 32,768 or not: two consecutive numbers are far from independent.
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

/*
 * Returns a number below `limit`. A limit beyond the generator's range is reached in steps. So a
 * holder of less than a 65,535th of all tickets may lie between two steps and never win.
 */
POLICY_FUNCTION uint64_t random_lfsr16_below(random_state_t *state, uint64_t limit)
{
    uint64_t number = random_lfsr16(state);
    return limit > LFSR16_RANGE ? (number - 1) * limit / LFSR16_RANGE : number % limit;
}

#endif
