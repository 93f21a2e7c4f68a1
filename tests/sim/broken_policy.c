/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * In place of round-robin, a policy that is wrong now and then: it forgets that a task is to
 * be taken out when three or more are queued. The fuzzer must find it.
 */

#define policy_rr policy_sound
#include "policies/rr.c"
#undef policy_rr

static void dequeue_or_not(run_queue_t *queue, task_t *task)
{
    if (queue->queued < 3)
        policy_sound.dequeue(queue, task);
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
    .enqueue = rr_enqueue,
    .dequeue = dequeue_or_not,
    .pick = rr_pick,
    .tick = rr_tick,
    .time_slice = rr_time_slice,
    .shared_queue = rr_shared_queue,
};
