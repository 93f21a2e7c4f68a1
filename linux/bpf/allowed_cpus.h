/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_ALLOWED_CPUS_H
#define LINUX_BPF_ALLOWED_CPUS_H

/* The CPUs that a thread may use, in the format of AFFINITY: a word for each 64 CPUs of the
 * machine. */

#include "observed_cpu.h"
#include "trace_emit.h"

#define WORDS_MAX (HOST_CPUS / 64)

/* Returns the CPUs of that word that the machine has. */
static uint64_t machine_word(uint32_t word)
{
    uint32_t left = told.cpus - word * 64;
    return left < 64 ? (1ull << left) - 1 : ~0ull;
}

static uint64_t allowed_word(struct task_struct *task, uint32_t word)
{
    uint64_t bits = 0;
    uint64_t place = (uint64_t)__builtin_preserve_access_index(&task->cpus_mask.bits);
    bpf_probe_read_kernel(&bits, sizeof(bits), (void *)(place + word * sizeof(bits)));
    return bits & machine_word(word);
}

/*
 * Writes the CPU set of a thread that the trace knows. A sequence number is taken before a word is
 * read. So if another CPU changes the set at the same time, its record comes later.
 */
static __attribute__((noinline)) int emit_allowed(struct trace_state *state,
                                                  struct task_struct *task, uint32_t pid)
{
    for (uint32_t word = 0; word < WORDS_MAX && word * 64 < told.cpus; word++) {
        struct trace_record *record = trace_reserve(state, 1);
        if (!record)
            continue;
        uint32_t sequence = trace_numbers(state, 1);
        uint64_t bits = allowed_word(task, word);
        trace_fill(record, bpf_ktime_get_boot_ns(), sequence, TRACE_AFFINITY, pid, word, bits);
        bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    }
    return 0;
}

/* Returns true if the two may use the same CPUs; `other`: null for a thread that may use all. */
static __attribute__((noinline)) bool same_allowed(struct task_struct *task,
                                                   struct task_struct *other)
{
    for (uint32_t word = 0; word < WORDS_MAX && word * 64 < told.cpus; word++) {
        if (allowed_word(task, word) != (other ? allowed_word(other, word) : machine_word(word)))
            return false;
    }
    return true;
}

#endif
