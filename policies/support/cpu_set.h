/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_CPU_SET_H
#define SCHEDLAB_CPU_SET_H

/* Sets of CPUs, for hosts that are not BPF programs. */

#include "policies/policy.h"

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

/* Removes CPUs from `cpus` upwards. Returns the number of the remaining ones. */
static inline uint32_t cpu_set_limit(struct cpu_set *set, uint32_t cpus)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < POLICY_CPUS_MAX / 64; i++) {
        uint32_t first = i * 64;
        if (first >= cpus)
            set->words[i] = 0;
        else if (cpus - first < 64)
            set->words[i] &= (1ull << (cpus - first)) - 1;
        left += (uint32_t)__builtin_popcountll(set->words[i]);
    }
    return left;
}

/* Restricts the task to the CPUs of `set`, `count` of them. They must be limited to the
 * machine's. `target` is the task's own memory. */
static inline void cpu_set_give(struct task *task, struct cpu_set *target,
                                const struct cpu_set *set, uint32_t count, uint32_t cpus)
{
    *target = *set;
    task->cpus = count < cpus ? target : NULL;
}

/* Returns the lowest CPU of the set that is at least `from` and below `limit`, or NO_CPU. */
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
