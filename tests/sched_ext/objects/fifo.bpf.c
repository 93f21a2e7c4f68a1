/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* One queue for the whole machine, first in, first out. A waking task may go to an idle CPU. */
#include "scheduler.h"

u64 enqueued, dispatched_directly;

CALLBACK(s32, fifo_select_cpu)
{
    bool is_idle = false;
    s32 cpu = scx_bpf_select_cpu_dfl(TASK(0), (s32)argument[1], argument[2], &is_idle);
    if (is_idle) {
        __sync_fetch_and_add(&dispatched_directly, 1);
        insert(TASK(0), SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
    }
    return cpu;
}

CALLBACK(void, fifo_enqueue)
{
    __sync_fetch_and_add(&enqueued, 1);
    insert(TASK(0), SCX_DSQ_GLOBAL, SCX_SLICE_DFL, argument[1]);
}

RECORD_EXIT(fifo_exit)

SECTION(".struct_ops.link")
struct sched_ext_ops fifo = {
    .select_cpu = (void *)fifo_select_cpu,
    .enqueue = (void *)fifo_enqueue,
    .exit = (void *)fifo_exit,
    .name = "fifo",
};
