/* SPDX-License-Identifier: MIT */
#ifndef SIM_CPU_SET_H
#define SIM_CPU_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/policy.h"

/* A set of CPUs. */
struct cpu_set {
    uint64_t words[POLICY_CPUS_MAX / 64];
};

static inline bool cpu_set_has(const struct cpu_set *set, uint32_t cpu)
{
    return set->words[cpu / 64] >> (cpu % 64) & 1;
}

static inline void cpu_set_add(struct cpu_set *set, uint32_t cpu)
{
    set->words[cpu / 64] |= 1ull << (cpu % 64);
}

static inline void cpu_set_remove(struct cpu_set *set, uint32_t cpu)
{
    set->words[cpu / 64] &= ~(1ull << (cpu % 64));
}

/* Returns the lowest CPU of the set that is `from` or above, and below `limit`, or NO_CPU if there
 * is none. */
static inline uint32_t cpu_set_next(const struct cpu_set *set, uint32_t from, uint32_t limit)
{
    for (uint32_t first = from; first < limit; first = (first / 64 + 1) * 64) {
        uint64_t bits = set->words[first / 64] & UINT64_MAX << (first % 64);
        if (bits) {
            uint32_t cpu = first / 64 * 64 + (uint32_t)__builtin_ctzll(bits);
            return cpu < limit ? cpu : NO_CPU;
        }
    }
    return NO_CPU;
}

#endif
