/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Reports an error to the kernel when the first task wakes, as the adapter does for a policy's
 * mistake.
 */

#include "fifo.h"

POLICY_FUNCTION uint32_t complains_place(const scheduler_t *scheduler, const task_t *task,
                                         enum enqueue_reason reason)
{
#ifdef __bpf__
    static char format[] = "a test: task %d is not to its liking";
    unsigned long long arguments[] = {(unsigned long long)task->pid};
    scx_bpf_error_bstr(format, arguments, sizeof(arguments));
#endif
    (void)scheduler;
    (void)reason;
    return task->cpu;
}

POLICY_DEFINITION policy_complains = {
    .name = "complains",
    .meaning = "a test: tells the kernel of an error",
    .source = "a test",
    .order = "The task that came first is next.",
    .enqueue = fifo_enqueue,
    .dequeue = fifo_dequeue,
    .pick = fifo_pick,
    .tick = fifo_tick,
    .time_slice = fifo_time_slice,
    .place = complains_place,
};
