/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_TRACE_EMIT_H
#define LINUX_BPF_TRACE_EMIT_H

#include "shared_maps.h"

#include "../../abi/system_calls.h"
#include "../../abi/trace_format.h"

/* The next `count` numbers of the trace's sequence are the caller's; the first of them. */
static inline __attribute__((always_inline)) uint32_t trace_numbers(struct trace_state *state,
                                                                    uint32_t count)
{
    return (uint32_t)__sync_fetch_and_add(&state->sequence, count);
}

/*
 * Writes one record, of this CPU. The caller has interrupts off: so the records
 * of a CPU are in the order of their times. A record that finds no room leaves
 * its number out, by which a reader sees the loss, and is counted.
 */
static inline __attribute__((always_inline)) void trace_write(struct trace_state *state,
                                                              uint64_t time, uint32_t sequence,
                                                              uint32_t kind, uint32_t process,
                                                              uint32_t first, uint64_t second)
{
    struct trace_record *record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);
    if (!record) {
        __sync_fetch_and_add(&state->lost, 1);
        return;
    }
    record->time = time;
    record->sequence = sequence;
    record->process = process;
    record->kind = (uint16_t)kind;
    record->cpu = (uint16_t)bpf_get_smp_processor_id();
    record->first = first;
    record->second = second;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Where the trace's numbers are; null: nothing is recorded now. */
static inline __attribute__((always_inline)) struct trace_state *trace_recording(void)
{
    uint32_t key = 0;
    struct trace_state *state = bpf_map_lookup_elem(&trace_state, &key);
    return state && state->on ? state : 0;
}

/* Writes one record of now, if anything is recorded. The caller has interrupts off. */
static __attribute__((noinline, unused)) void trace_emit(uint32_t kind, uint32_t process,
                                                         uint32_t first, uint64_t second)
{
    struct trace_state *state = trace_recording();
    if (!state)
        return;
    uint32_t sequence = trace_numbers(state, 1);
    trace_write(state, bpf_ktime_get_boot_ns(), sequence, kind, process, first, second);
}

/*
 * Says why `cpu` is about to be asked to pick again, for the PREEMPT that may
 * follow: a policy knows what the kernel's tracepoints do not tell.
 */
static __attribute__((noinline, unused)) void trace_preempt_reason(uint32_t cpu,
                                                                   enum preempt_reason reason)
{
    uint32_t *said = bpf_map_lookup_elem(&preempt_reasons, &cpu);
    if (said)
        *said = reason;
}

#endif
