/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_OLD_GENERATORS_H
#define SCHEDLAB_OLD_GENERATORS_H

#include "policies/policy.h"
#include "policies/random.h"

/*
 * Random number generators of the studies. Most have a narrower range than policies/random.h. No
 * study has as many tickets as its generator has numbers. With more tickets, the functions below
 * let the later tickets win, too.
 */

#define XORSHIFT31_RANGE (1ull << 31)
#define LFSR16_RANGE     65535ull
#define LCG32_RANGE      (1ull << 32)

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

/*
 * A 32-bit linear congruential generator (Lehmer 1951) with the factor and the summand of xv6's own
 * tests; study 1 gives none. The k lowest bits repeat after 2^k numbers.
 */
POLICY_FUNCTION uint64_t random_lcg32(random_state_t *state)
{
    *state = (uint32_t)(*state * 1664525 + 1013904223);
    return *state;
}

/* Returns a number below `limit`, its remainder. A limit beyond the range combines two numbers. */
POLICY_FUNCTION uint64_t random_lcg32_below(random_state_t *state, uint64_t limit)
{
    uint64_t number = random_lcg32(state);
    return (limit > LCG32_RANGE ? number * LCG32_RANGE + random_lcg32(state) : number) % limit;
}

/*
 * A Mersenne Twister of 127 bits (Saito and Matsumoto 2011, TinyMT32, RFC 8682), which fits in a
 * policy's state. Its first bit is not used.
 */
struct twister {
    uint32_t word[4];
};
typedef struct twister SHARED_MEMORY twister_t;

POLICY_FUNCTION void random_twister_step(twister_t *state)
{
    uint32_t last = state->word[3];
    uint32_t mixed = (state->word[0] & 0x7fffffff) ^ state->word[1] ^ state->word[2];
    mixed ^= mixed << 1;
    last ^= (last >> 1) ^ mixed;
    uint32_t odd = last & 1 ? UINT32_MAX : 0;
    state->word[0] = state->word[1];
    state->word[1] = state->word[2] ^ (odd & 0x8f7011ee);
    state->word[2] = mixed ^ last << 10 ^ (odd & 0xfc78ff1f);
    state->word[3] = last;
}

POLICY_FUNCTION void random_twister_start(twister_t *state, uint32_t seed)
{
    state->word[0] = seed;
    state->word[1] = 0x8f7011ee;
    state->word[2] = 0xfc78ff1f;
    state->word[3] = 0x3793fdff;
    for (uint32_t i = LOOP_START(1); i < 8 && LOOP_GUARD; i++) {
        uint32_t before = state->word[(i - 1) % 4];
        state->word[i % 4] ^= i + 1812433253 * (before ^ before >> 30);
    }
    for (uint32_t i = LOOP_START(0); i < 8 && LOOP_GUARD; i++)
        random_twister_step(state);
}

/* Returns 32 bits. */
POLICY_FUNCTION uint32_t random_twister(twister_t *state)
{
    random_twister_step(state);
    uint32_t sum = state->word[0] + (state->word[2] >> 8);
    return state->word[3] ^ sum ^ (sum & 1 ? 0x3793fdff : 0);
}

POLICY_FUNCTION uint64_t random_twister_below(twister_t *state, uint64_t limit)
{
    uint64_t upper = (uint64_t)random_twister(state) << 32;
    return (upper | random_twister(state)) % limit;
}

#endif
