/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* One queue for the whole machine, ordered by virtual time, which passes by the task's weight. */
#include "scheduler.h"

enum { QUEUE = 0, WEIGHT_NORMAL = 100 };

const volatile u64 slice_ns;
u64 vtime_now;

static u64 slice(void)
{
    return slice_ns ? slice_ns : SCX_SLICE_DFL;
}

CALLBACK(s32, vtime_select_cpu)
{
    bool is_idle = false;
    s32 cpu = scx_bpf_select_cpu_dfl(TASK(0), (s32)argument[1], argument[2], &is_idle);
    if (is_idle)
        insert(TASK(0), SCX_DSQ_LOCAL, slice(), 0);
    return cpu;
}

/* A task that slept keeps at most one time slice of its arrears. */
CALLBACK(void, vtime_enqueue)
{
    u64 vtime = TASK(0)->scx.dsq_vtime;
    if (is_before(vtime, vtime_now - slice()))
        vtime = vtime_now - slice();
    insert_ordered(TASK(0), QUEUE, slice(), vtime, argument[1]);
}

CALLBACK(void, vtime_dispatch)
{
    move_to_local(QUEUE);
}

CALLBACK(void, vtime_running)
{
    if (is_before(vtime_now, TASK(0)->scx.dsq_vtime))
        vtime_now = TASK(0)->scx.dsq_vtime;
}

CALLBACK(void, vtime_stopping)
{
    u64 used = used_slice(TASK(0), slice());
    TASK(0)->scx.dsq_vtime += used * WEIGHT_NORMAL / TASK(0)->scx.weight;
}

CALLBACK(void, vtime_enable)
{
    TASK(0)->scx.dsq_vtime = vtime_now;
}

SLEEPING_CALLBACK(s32, vtime_init)
{
    return scx_bpf_create_dsq(QUEUE, -1);
}

RECORD_EXIT(vtime_exit)

SECTION(".struct_ops.link")
struct sched_ext_ops vtime = {
    .select_cpu = (void *)vtime_select_cpu,
    .enqueue = (void *)vtime_enqueue,
    .dispatch = (void *)vtime_dispatch,
    .running = (void *)vtime_running,
    .stopping = (void *)vtime_stopping,
    .enable = (void *)vtime_enable,
    .init = (void *)vtime_init,
    .exit = (void *)vtime_exit,
    .name = "vtime",
};
