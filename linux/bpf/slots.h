/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_SLOTS_H
#define LINUX_BPF_SLOTS_H

/* Threads and their slots. A slot's number is the lowest that no living thread has. */

#include "host.h"

/*
 * Returns null for a thread that Linux schedules itself. The PID is read again each time: a thread
 * that calls exec() takes over the PID of its process's first thread.
 */
static __always_inline slot_t *slot_of(struct task_struct *thread)
{
    struct slot_of *entry = bpf_task_storage_get(&slot_of_thread, thread, NULL, 0);
    if (!entry || !entry->slot)
        return NULL;
    slot_t *slot = entry->slot;
    slot->task.pid = thread->pid;
    return slot;
}

/* Returns the number of the slot that is taken, or SLOTS_MAX if none was free. Needs slots_lock. */
static __noinline uint32_t take_lowest_slot(void)
{
    uint32_t words = unseen(SLOT_WORDS);
    for (uint32_t word = unseen(0); word < words && can_loop; word++) {
        uint64_t used = host->slots_used[word];
        if (used == UINT64_MAX)
            continue;
        uint32_t bit = 0;
        while (used >> (bit & 63) & 1 && can_loop)
            bit++;
        host->slots_used[word] = used | 1ull << (bit & 63);
        return word * 64 + (bit & 63);
    }
    return SLOTS_MAX;
}

static __noinline void clear_slot(slot_t *slot)
{
    uint64_t SHARED_MEMORY *words = (uint64_t SHARED_MEMORY *)slot;
    uint32_t count = unseen(sizeof(*slot) / 8);
    for (uint32_t i = unseen(0); i < count && can_loop; i++)
        words[i] = 0;
}

static __noinline uint32_t allocate_slot(void)
{
    uint32_t key = 0;
    unsigned long flags;
    struct lock *lock = bpf_map_lookup_elem(&slots_lock, &key);
    if (!lock || bpf_res_spin_lock_irqsave(&lock->spin, &flags))
        return SLOTS_MAX;
    uint32_t number = take_lowest_slot();
    bpf_res_spin_unlock_irqrestore(&lock->spin, &flags);
    return number;
}

static __noinline void release_slot(uint32_t number)
{
    uint32_t key = 0;
    unsigned long flags;
    struct lock *lock = bpf_map_lookup_elem(&slots_lock, &key);
    if (!lock || bpf_res_spin_lock_irqsave(&lock->spin, &flags))
        return;
    host->slots_used[number / 64 % SLOT_WORDS] &= ~(1ull << number % 64);
    bpf_res_spin_unlock_irqrestore(&lock->spin, &flags);
}

/* A thread without stored attributes has the default ones. */
static __always_inline void read_attributes(slot_t *slot, const struct task_attributes *attributes)
{
    if (attributes && attributes->set)
        COPY_ATTRIBUTES(&slot->task, attributes);
    else
        SET_FIRST_ATTRIBUTES(&slot->task);
}

/* The policy sees no set of a thread that may use all CPUs. */
static __noinline void read_allowed(slot_t *slot, const struct cpumask *mask)
{
    uint32_t allowed = unseen(0);
    for (uint32_t word = unseen(0); word < CPU_WORDS && can_loop; word++)
        slot->allowed.words[word] = 0;
    for (uint32_t cpu = unseen(0); cpu < host->scheduler.cpus && can_loop; cpu++) {
        if (!bpf_cpumask_test_cpu(cpu, mask))
            continue;
        slot->allowed.words[cpu / 64 % CPU_WORDS] |= 1ull << cpu % 64;
        allowed++;
    }
    slot->task.cpus = allowed < host->scheduler.cpus ? &slot->allowed : NULL;
}

#endif
