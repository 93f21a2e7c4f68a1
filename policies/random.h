/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_RANDOM_H
#define SCHEDLAB_RANDOM_H

#include "policy.h"

/*
 * Pseudo-random numbers. A generator's state is one number of the policy's state; any value is a
 * valid seed. The same seed gives the same numbers on every host.
 */
typedef uint64_t SHARED_MEMORY random_state_t;

/* splitmix64 (Steele, Lea and Flood 2014): 64 bits, passes the usual batteries of tests. */
POLICY_FUNCTION uint64_t random_splitmix(random_state_t *state)
{
    *state += 0x9e3779b97f4a7c15;
    uint64_t value = *state;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

#endif
