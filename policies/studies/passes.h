/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_PASSES_H
#define SCHEDLAB_PASSES_H

#include "policies/aging_lists.h"
#include "policies/policy.h"

/*
 * Study 1's aging clock, for study-priority.c: its code counts passes of any CPU through the
 * scheduler. An idle CPU passes all the time, `idle` times in a tick.
 *
 * Each queue counts the passes of its CPU, under its lock; other CPUs read the counts without
 * locks.
 */
struct passing_queue {
    struct aging_queue aging;
    uint64_t passes;     /* until the CPU was last idle */
    uint64_t idle_since; /* nanoseconds; BUSY while the CPU runs a task */
};
typedef struct passing_queue SHARED_MEMORY passing_queue_t;

#define BUSY UINT64_MAX

POLICY_FUNCTION passing_queue_t *passing_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct passing_queue);
}

POLICY_FUNCTION uint64_t passes_while_idle(const run_queue_t *queue, uint64_t now, uint64_t idle)
{
    uint64_t since = STATE_OF(queue, struct passing_queue)->idle_since;
    return since < now ? (now - since) * idle / queue->scheduler->tick_ns : 0;
}

/* Returns the number of passes of all CPUs so far. */
POLICY_FUNCTION uint64_t passes_of_all(const scheduler_t *scheduler, uint64_t now, uint64_t idle)
{
    uint64_t passes = 0;
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->queues && LOOP_GUARD; cpu++) {
        const run_queue_t *queue = scheduler->queue[cpu];
        passes += STATE_OF(queue, struct passing_queue)->passes;
        passes += passes_while_idle(queue, now, idle);
    }
    return passes;
}

/* Called when the CPU picks a task. */
POLICY_FUNCTION void passes_begin_turn(run_queue_t *queue, uint64_t idle)
{
    passing_queue_of(queue)->passes += 1 + passes_while_idle(queue, queue->now, idle);
    passing_queue_of(queue)->idle_since = BUSY;
}

/* Called when a task leaves the CPU. */
POLICY_FUNCTION void passes_end_turn(run_queue_t *queue)
{
    passing_queue_of(queue)->idle_since = queue->now;
}

#endif
