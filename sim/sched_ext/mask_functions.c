/* SPDX-License-Identifier: MIT */

/* Functions of CPU masks (bpf_cpumask_*). */

#include <string.h>

#include "sim/sched_ext/functions.h"

FUNCTION(bpf_cpumask_create)
{
    struct sched_ext *ext = ext_of(guest);
    uint64_t address = heap_take(ext, sizeof(struct bpf_cpumask));
    struct bpf_cpumask *mask = guest_memory(guest, address, sizeof(*mask));
    (void)arguments;
    if (address && mask)
        mask->usage.refs.counter = 1;
    return address;
}

FUNCTION(bpf_cpumask_acquire)
{
    uint32_t *references = heap_references(ext_of(guest), arguments[0]);
    if (references)
        ++*references;
    return arguments[0];
}

FUNCTION(bpf_cpumask_release)
{
    uint32_t *references = heap_references(ext_of(guest), arguments[0]);
    if (!references)
        guest_trap(guest, "releases a mask at %#llx, where there is none",
                   (unsigned long long)arguments[0]);
    else if (--*references == 0)
        heap_give_back(ext_of(guest), arguments[0]);
    return 0;
}

FUNCTION(bpf_cpumask_first)
{
    struct sched_ext *ext = ext_of(guest);
    const uint64_t *mask = mask_at(ext, arguments[0]);
    return mask ? mask_next(ext, mask, NULL, 0) : 0;
}

FUNCTION(bpf_cpumask_first_and)
{
    struct sched_ext *ext = ext_of(guest);
    const uint64_t *mask = mask_at(ext, arguments[0]);
    const uint64_t *other = mask_at(ext, arguments[1]);
    return mask && other ? mask_next(ext, mask, other, 0) : 0;
}

FUNCTION(bpf_cpumask_first_zero)
{
    struct sched_ext *ext = ext_of(guest);
    const uint64_t *mask = mask_at(ext, arguments[0]);
    uint32_t cpu = 0;
    while (mask && cpu < ext->cpu_count && mask_has(ext, mask, cpu))
        cpu++;
    return cpu;
}

/* Sets or clears a CPU. Returns its old value. */
static bool change(struct guest *guest, const uint64_t *arguments, bool value)
{
    struct sched_ext *ext = ext_of(guest);
    uint64_t *mask = program_mask_at(ext, arguments[1]);
    uint32_t cpu = (uint32_t)arguments[0];
    bool old = mask && mask_has(ext, mask, cpu);
    if (mask)
        mask_set(ext, mask, cpu, value);
    return old;
}

FUNCTION(bpf_cpumask_set_cpu)
{
    change(guest, arguments, true);
    return 0;
}

FUNCTION(bpf_cpumask_clear_cpu)
{
    change(guest, arguments, false);
    return 0;
}

FUNCTION(bpf_cpumask_test_cpu)
{
    struct sched_ext *ext = ext_of(guest);
    const uint64_t *mask = mask_at(ext, arguments[1]);
    return mask && mask_has(ext, mask, (uint32_t)arguments[0]);
}

FUNCTION(bpf_cpumask_test_and_set_cpu)
{
    return change(guest, arguments, true);
}

FUNCTION(bpf_cpumask_test_and_clear_cpu)
{
    return change(guest, arguments, false);
}

FUNCTION(bpf_cpumask_setall)
{
    struct sched_ext *ext = ext_of(guest);
    uint64_t *mask = program_mask_at(ext, arguments[0]);
    for (uint32_t cpu = 0; mask && cpu < ext->cpu_count; cpu++)
        mask_set(ext, mask, cpu, true);
    return 0;
}

FUNCTION(bpf_cpumask_clear)
{
    uint64_t *mask = program_mask_at(ext_of(guest), arguments[0]);
    if (mask)
        memset(mask, 0, sizeof(cpumask_t));
    return 0;
}

/* Stores the result of an operation on two masks. Returns true if it has a CPU. */
static bool combine(struct guest *guest, const uint64_t *arguments, char operation)
{
    struct sched_ext *ext = ext_of(guest);
    uint64_t *to = program_mask_at(ext, arguments[0]);
    const uint64_t *a = mask_at(ext, arguments[1]);
    const uint64_t *b = mask_at(ext, arguments[2]);
    uint64_t any = 0;
    for (uint32_t word = 0; to && a && b && word < ext->mask_words; word++) {
        to[word] = operation == '&'   ? a[word] & b[word]
                   : operation == '|' ? a[word] | b[word]
                                      : a[word] ^ b[word];
        any |= to[word];
    }
    return any != 0;
}

FUNCTION(bpf_cpumask_and)
{
    return combine(guest, arguments, '&');
}

FUNCTION(bpf_cpumask_or)
{
    combine(guest, arguments, '|');
    return 0;
}

FUNCTION(bpf_cpumask_xor)
{
    combine(guest, arguments, '^');
    return 0;
}

/* Returns the number of CPUs that are in the first mask and, if `within`, in the second one; or
 * else are not in the second one. */
static uint32_t count_common(struct guest *guest, const uint64_t *arguments, bool within)
{
    struct sched_ext *ext = ext_of(guest);
    const uint64_t *a = mask_at(ext, arguments[0]);
    const uint64_t *b = mask_at(ext, arguments[1]);
    uint32_t count = 0;
    for (uint32_t cpu = 0; a && b && cpu < ext->cpu_count; cpu++)
        count += mask_has(ext, a, cpu) && mask_has(ext, b, cpu) == within;
    return count;
}

static uint32_t weigh(struct guest *guest, uint64_t address)
{
    struct sched_ext *ext = ext_of(guest);
    const uint64_t *mask = mask_at(ext, address);
    uint32_t count = 0;
    for (uint32_t cpu = 0; mask && cpu < ext->cpu_count; cpu++)
        count += mask_has(ext, mask, cpu);
    return count;
}

FUNCTION(bpf_cpumask_equal)
{
    return count_common(guest, arguments, false) == 0 &&
           weigh(guest, arguments[0]) == weigh(guest, arguments[1]);
}

FUNCTION(bpf_cpumask_intersects)
{
    return count_common(guest, arguments, true) > 0;
}

FUNCTION(bpf_cpumask_subset)
{
    return count_common(guest, arguments, false) == 0;
}

FUNCTION(bpf_cpumask_empty)
{
    return weigh(guest, arguments[0]) == 0;
}

FUNCTION(bpf_cpumask_full)
{
    return weigh(guest, arguments[0]) == ext_of(guest)->cpu_count;
}

FUNCTION(bpf_cpumask_copy)
{
    uint64_t *to = program_mask_at(ext_of(guest), arguments[0]);
    const uint64_t *from = mask_at(ext_of(guest), arguments[1]);
    if (to && from)
        memmove(to, from, sizeof(cpumask_t));
    return 0;
}

FUNCTION(bpf_cpumask_weight)
{
    return weigh(guest, arguments[0]);
}

FUNCTION(bpf_cpumask_any_distribute)
{
    struct sched_ext *ext = ext_of(guest);
    const uint64_t *mask = mask_at(ext, arguments[0]);
    return mask ? mask_distribute(ext, mask, NULL) : 0;
}

FUNCTION(bpf_cpumask_any_and_distribute)
{
    struct sched_ext *ext = ext_of(guest);
    const uint64_t *mask = mask_at(ext, arguments[0]);
    const uint64_t *other = mask_at(ext, arguments[1]);
    return mask && other ? mask_distribute(ext, mask, other) : 0;
}

FUNCTION(bpf_cpumask_populate)
{
    struct sched_ext *ext = ext_of(guest);
    uint64_t *mask = program_mask_at(ext, arguments[0]);
    uint64_t bytes = arguments[2] < sizeof(cpumask_t) ? arguments[2] : sizeof(cpumask_t);
    const void *from = guest_memory(guest, arguments[1], bytes);
    if (!mask || !from)
        return failure(LINUX_EINVAL);
    memset(mask, 0, sizeof(cpumask_t));
    memcpy(mask, from, bytes);
    return 0;
}
