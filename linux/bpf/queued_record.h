/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_QUEUED_RECORD_H
#define LINUX_BPF_QUEUED_RECORD_H

/* The trace's records of places in queues. */

#include "errands.h"

#include "abi/process_info.h"

/* True if each enqueue() is traced. The loader sets it before it loads this object: if it is
 * false, the verifier removes the code below as dead. */
const volatile bool told_queues SEC(".rodata.trace");

/*
 * A QUEUED record in preparation. Its sequence number is taken while the queue is locked, so that
 * no CPU that picks the thread can write a record with a lower one. A BPF program may call no
 * kernel function while it holds a lock. So space in the ring is reserved before, and the record is
 * kept here until the lock is free. (A dynptr holds the space. It must be released even if there
 * was no space, so the verifier has one case to check instead of two.)
 */
struct queued {
    struct bpf_dynptr place;
    struct trace_state *state;
    struct trace_record record; /* of kind 0: no thread was queued */
    uint32_t has_place;
};

static __always_inline void queued_begin(struct queued *queued, uint64_t now)
{
    uint32_t key = 0;
    if (!told_queues)
        return;
    queued->state = bpf_map_lookup_elem(&trace_state, &key);
    queued->has_place =
        unseen(bpf_ringbuf_reserve_dynptr(&events, sizeof(queued->record), 0, &queued->place) == 0);
    trace_fill(&queued->record, now, 0, 0, 0, 0, 0);
}

/* The queue is locked. */
static __always_inline void queued_note(struct queued *queued, const slot_t *slot)
{
    if (!told_queues || !queued->state || !queued->state->on || !slot->traced)
        return;
    queued->record.kind = TRACE_QUEUED;
    queued->record.process = slot->traced;
    queued->record.first = queue_number(slot->task.cpu);
    queued->record.second = slot->task.level;
    if (queued->has_place)
        queued->record.sequence = trace_numbers(queued->state, 1);
    else
        __sync_fetch_and_add(&queued->state->lost, 1);
}

static __always_inline void queued_end(struct queued *queued)
{
    if (!told_queues)
        return;
    if (queued->record.kind) {
        bpf_dynptr_write(&queued->place, 0, &queued->record, sizeof(queued->record), 0);
        bpf_ringbuf_submit_dynptr(&queued->place, BPF_RB_NO_WAKEUP);
    } else {
        bpf_ringbuf_discard_dynptr(&queued->place, BPF_RB_NO_WAKEUP);
    }
}

/* Records the PID that the trace uses for a thread: exec() may have changed it, and the trace
 * does not know yet. A queued thread calls no exec(). It is 0 if the thread has ended for the
 * trace. */
static __always_inline void learn_traced_pid(slot_t *slot, struct task_struct *thread)
{
    if (!told_queues)
        return;
    struct observed *known = bpf_task_storage_get(&observed, thread, NULL, 0);
    slot->traced = known && known->pid ? known->pid : (uint32_t)thread->pid;
    if (known && known->state == PROCESS_ZOMBIE)
        slot->traced = 0;
}

#endif
