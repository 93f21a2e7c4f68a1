/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_TRACE_EMIT_H
#define LINUX_BPF_TRACE_EMIT_H

#include "shared_maps.h"

#include "abi/system_calls.h"
#include "abi/trace_format.h"

/* Takes the next `count` sequence numbers of the trace. Returns the first of them. */
static inline __attribute__((always_inline)) uint32_t trace_numbers(struct trace_state *state,
                                                                    uint32_t count)
{
    return (uint32_t)__sync_fetch_and_add(&state->sequence, count);
}

/*
 * Reserves space for records of this CPU; trace_fill() fills it and bpf_ringbuf_submit() submits
 * it. Returns null if there is no space, and the records count as lost. Only records with space
 * take sequence numbers, so a reader that waits for each number never waits endlessly. The caller
 * has interrupts off, so a CPU's records are in the order of their times.
 */
static inline __attribute__((always_inline)) struct trace_record *
trace_reserve(struct trace_state *state, uint32_t count)
{
    struct trace_record *records =
        bpf_ringbuf_reserve(&events, count * sizeof(struct trace_record), 0);
    if (!records)
        __sync_fetch_and_add(&state->lost, count);
    return records;
}

static inline __attribute__((always_inline)) void trace_fill(struct trace_record *record,
                                                             uint64_t time, uint32_t sequence,
                                                             uint32_t kind, uint32_t process,
                                                             uint32_t first, uint64_t second)
{
    record->time = time;
    record->sequence = sequence;
    record->process = process;
    record->kind = (uint16_t)kind;
    record->cpu = (uint16_t)bpf_get_smp_processor_id();
    record->first = first;
    record->second = second;
}

/* Returns the trace's counters, or null if nothing is recorded now. */
static inline __attribute__((always_inline)) struct trace_state *trace_recording(void)
{
    uint32_t key = 0;
    struct trace_state *state = bpf_map_lookup_elem(&trace_state, &key);
    return state && state->on ? state : 0;
}

/* Writes one record with the present time. Returns 1 if it is written, and 0 if nothing is
 * recorded or the ring is full. The caller has interrupts off. */
static __attribute__((noinline, unused)) int trace_emit(uint32_t kind, uint32_t process,
                                                        uint32_t first, uint64_t second)
{
    struct trace_state *state = trace_recording();
    if (!state)
        return 0;
    struct trace_record *record = trace_reserve(state, 1);
    if (!record)
        return 0;
    uint32_t sequence = trace_numbers(state, 1);
    trace_fill(record, bpf_ktime_get_boot_ns(), sequence, kind, process, first, second);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 1;
}

/*
 * Records why `cpu` is about to be asked to pick again, for the PREEMPT that may follow. A policy
 * knows the reason, which the kernel's tracepoints do not give.
 */

static __attribute__((noinline, unused)) void trace_preempt_reason(uint32_t cpu,
                                                                   enum preempt_reason reason)
{
    uint32_t *stored = bpf_map_lookup_elem(&preempt_reasons, &cpu);
    if (stored)
        *stored = reason;
}

#endif
