/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/* Writes to an arbitrary address: the kernel's verifier must reject it. */

#include "fifo.h"

POLICY_FUNCTION enum tick_verdict rejected_tick(run_queue_t *queue, task_t *task)
{
    (void)queue;
    *(volatile uint64_t *)(unsigned long)task->run_time = 1;
    return TICK_PREEMPT;
}

POLICY_DEFINITION policy_rejected = {
    .name = "rejected",
    .meaning = "a test: writes to an address that it has made up",
    .source = "a test",
    .order = "The task that came first is next.",
    .enqueue = fifo_enqueue,
    .dequeue = fifo_dequeue,
    .pick = fifo_pick,
    .tick = rejected_tick,
    .time_slice = fifo_time_slice,
};
