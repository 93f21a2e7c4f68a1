/* SPDX-License-Identifier: MIT */

/* Masks of CPUs. */

#include "sim/sched_ext/state.h"

const uint64_t *mask_at(struct sched_ext *ext, uint64_t address)
{
    const uint64_t *mask =
        address % 8 ? NULL : guest_memory(&ext->guest, address, sizeof(cpumask_t));
    if (!mask) {
        guest_trap(&ext->guest, "there is no CPU mask at %#llx", (unsigned long long)address);
        return NULL;
    }
    return mask;
}

uint64_t *program_mask_at(struct sched_ext *ext, uint64_t address)
{
    uint64_t *mask = guest_words(&ext->guest, address, sizeof(cpumask_t));
    if (!mask)
        guest_trap(&ext->guest, "there is no CPU mask of a program at %#llx",
                   (unsigned long long)address);
    return mask;
}

bool mask_has(const struct sched_ext *ext, const uint64_t *mask, uint32_t cpu)
{
    return cpu < ext->cpu_count && (mask[cpu / 64] >> cpu % 64 & 1);
}

void mask_set(const struct sched_ext *ext, uint64_t *mask, uint32_t cpu, bool value)
{
    uint64_t bit = 1ull << cpu % 64;
    if (cpu >= ext->cpu_count)
        return;
    mask[cpu / 64] = value ? mask[cpu / 64] | bit : mask[cpu / 64] & ~bit;
}

uint32_t mask_next(const struct sched_ext *ext, const uint64_t *mask, const uint64_t *other,
                   uint32_t from)
{
    for (uint32_t word = from / 64; word < ext->mask_words; word++) {
        uint64_t bits = mask[word] & (other ? other[word] : UINT64_MAX);
        if (word == from / 64)
            bits &= UINT64_MAX << from % 64;
        if (bits) {
            uint32_t cpu = word * 64 + (uint32_t)__builtin_ctzll(bits);
            return cpu < ext->cpu_count ? cpu : ext->cpu_count;
        }
    }
    return ext->cpu_count;
}

uint32_t mask_distribute(struct sched_ext *ext, const uint64_t *mask, const uint64_t *other)
{
    uint32_t *rotor = &ext->cpus[ext->this_cpu].rotor;
    uint32_t cpu = mask_next(ext, mask, other, *rotor + 1);
    if (cpu == ext->cpu_count)
        cpu = mask_next(ext, mask, other, 0);
    if (cpu < ext->cpu_count)
        *rotor = cpu;
    return cpu;
}
