/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * A policy that replaces round-robin and is occasionally wrong: it forgets to queue a task if
 * three or more are queued. The fuzzer must find this mistake. (Forgetting to dequeue a task could
 * turn the list into a ring, and the run would never end.)
 */

#define policy_rr policy_sound
#include "policies/rr.c"
#undef policy_rr

static void enqueue_or_not(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    if (queue->queued < 3)
        policy_sound.enqueue(queue, task, reason);
}

POLICY_DEFINITION policy_rr = {
    .name = "rr",
    .meaning = "round-robin with a fault",
    .source = "a test",
    .order = "The task that came first is next.",
    .tunables = rr_tunables,
    .tunable_count = sizeof(rr_tunables) / sizeof(rr_tunables[0]),
    .presets = rr_presets,
    .preset_count = sizeof(rr_presets) / sizeof(rr_presets[0]),
    .task_bytes = sizeof(struct rr_task),
    .enqueue = enqueue_or_not,
    .dequeue = rr_dequeue,
    .pick = rr_pick,
    .tick = rr_tick,
    .time_slice = rr_time_slice,
    .shared_queue = rr_shared_queue,
};
