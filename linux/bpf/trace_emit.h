/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_TRACE_EMIT_H
#define LINUX_BPF_TRACE_EMIT_H

#include "shared_maps.h"

#include "../../abi/trace_format.h"

/*
 * Writes one record of the event trace, of this CPU and now. The caller has
 * interrupts off: so the records of a CPU are in the order of their times. A
 * record that finds no room leaves its number out, by which a reader sees the
 * loss, and is counted.
 */
static __attribute__((noinline, unused)) void trace_emit(uint32_t kind, uint32_t process,
                                                         uint32_t first, uint64_t second)
{
    uint32_t key = 0;
    struct trace_state *state = bpf_map_lookup_elem(&trace_state, &key);
    if (!state || !state->on)
        return;
    uint32_t sequence = (uint32_t)__sync_fetch_and_add(&state->sequence, 1);
    struct trace_record *record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);
    if (!record) {
        __sync_fetch_and_add(&state->lost, 1);
        return;
    }
    record->time = bpf_ktime_get_boot_ns();
    record->sequence = sequence;
    record->process = process;
    record->kind = (uint16_t)kind;
    record->cpu = (uint16_t)bpf_get_smp_processor_id();
    record->first = first;
    record->second = second;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

#endif
