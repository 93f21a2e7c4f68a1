/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_EXACT_SLICES_H
#define EXPLORE_EXACT_SLICES_H

/* Checks: a task runs for as many ticks as its time slice has, and continues the slice after it
 * was preempted. */
static void slices_are_exact(const run_queue_t *queue, const struct member *member,
                             enum tick_verdict verdict)
{
    uint64_t slice = policy->time_slice(queue->scheduler, &member->task);
    if ((verdict == TICK_PREEMPT) != (member->ticks >= slice))
        watch_broken("tick() ended the time slice of pid %d after %" PRIu64 " of %" PRIu64 " ticks",
                     member->task.pid, member->ticks, slice);
}

#endif
