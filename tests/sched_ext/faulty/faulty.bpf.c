/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A queue for the whole machine, with a mistake that `fault` chooses: 0 is none. */
#include "../objects/scheduler.h"

enum fault {
    NONE,
    LOSES_TASKS,
    NEVER_RETURNS,
    STORES_ANYWHERE,
    WRONG_QUEUE,
    WRONG_CPU,
    GIVES_UP,
    DIVIDES_BY_ZERO,
    LOADS_ANYWHERE,
    GIVES_NO_SLICE,
};
enum { QUEUE = 7, FIRST_LOST = 4 };

const volatile u32 fault, zero;
u64 turns;

CALLBACK(void, faulty_enqueue)
{
    struct task_struct *task = TASK(0);
    u64 queue = QUEUE;
    if (fault == LOSES_TASKS && task->pid >= FIRST_LOST)
        return;
    while (fault == NEVER_RETURNS)
        __sync_fetch_and_add(&turns, 1);
    if (fault == STORES_ANYWHERE)
        task->pid = 0;
    if (fault == WRONG_QUEUE)
        queue = QUEUE + 1;
    if (fault == WRONG_CPU)
        queue = SCX_DSQ_LOCAL_ON | 500;
    if (fault == GIVES_UP) {
        u64 values[] = {(u64)task->pid};
        scx_bpf_error_bstr((char *)"\x1b[31mgives up on %d", values, sizeof(values));
    }
    if (fault == DIVIDES_BY_ZERO)
        turns += (u64)task->pid / zero;
    if (fault == LOADS_ANYWHERE)
        turns += *(volatile u64 *)(u64)zero;
    insert(task, queue, fault == GIVES_NO_SLICE ? 0 : SCX_SLICE_DFL, argument[1]);
}

CALLBACK(void, faulty_dispatch)
{
    move_to_local(QUEUE);
}

CALLBACK(s32, faulty_init)
{
    return scx_bpf_create_dsq(QUEUE, -1);
}

SECTION(".struct_ops.link")
struct sched_ext_ops faulty = {
    .enqueue = (void *)faulty_enqueue,
    .dispatch = (void *)faulty_dispatch,
    .init = (void *)faulty_init,
    .timeout_ms = 500,
    .name = "faulty",
};
