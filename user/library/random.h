/* SPDX-License-Identifier: MIT */
#ifndef USER_LIBRARY_RANDOM_H
#define USER_LIBRARY_RANDOM_H

#include <stdint.h>

/* SplitMix64 (Steele, Lea, Flood 2014): the same seed gives the same numbers everywhere. */
struct random {
    uint64_t state; /* initially the seed */
};

static inline uint64_t random_next(struct random *random)
{
    uint64_t value = random->state += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/* Returns a number from 0 to `limit` - 1; limit > 0. Its bias is below limit / 2^64. */
static inline uint64_t random_below(struct random *random, uint64_t limit)
{
    return random_next(random) % limit;
}

#endif
