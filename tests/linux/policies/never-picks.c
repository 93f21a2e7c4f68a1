/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/* Accepts tasks and never picks one; the machine must not hang. */

#include "fifo.h"

POLICY_FUNCTION task_t *never_picks_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)queue;
    (void)cpu;
    return NULL;
}

POLICY_DEFINITION policy_never_picks = {
    .name = "never-picks",
    .meaning = "a test: takes tasks and gives none out",
    .source = "a test",
    .order = "The task that came first is next.",
    .enqueue = fifo_enqueue,
    .dequeue = fifo_dequeue,
    .pick = never_picks_pick,
    .tick = fifo_tick,
    .time_slice = fifo_time_slice,
};
