/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * One CPU decides for all. Tasks wait in a queue map; the central CPU dispatches them to CPUs that
 * ask for one. Time slices have no end: a timer preempts tasks while others wait.
 */
#include "scheduler.h"

enum { CPUS_MAX = 1024, TASKS_MAX = 4096, FALLBACK = 0 };
enum { TIMER_NS = 1000000 };

const volatile s32 central_cpu;
const volatile u32 cpu_count = 1;
const volatile u64 slice_ns = 20000000;
u64 kicks, lost;

struct {
    NUMBER(type, MAP_QUEUE);
    NUMBER(max_entries, TASKS_MAX);
    TYPE(value, s32);
} waiting SECTION(".maps");

struct central_timer {
    struct bpf_timer timer;
};
struct {
    NUMBER(type, MAP_ARRAY);
    NUMBER(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct central_timer);
} timers SECTION(".maps");

struct cpu_state {
    u64 started_at;
    bool wants_task;
};
struct {
    NUMBER(type, MAP_ARRAY);
    NUMBER(max_entries, CPUS_MAX);
    TYPE(key, u32);
    TYPE(value, struct cpu_state);
} cpus SECTION(".maps");

CALLBACK(s32, central_select_cpu)
{
    return central_cpu;
}

/* Lets CPUs that are idle, and that the task may run on, look into the fallback queue. */
static NO_INLINE void kick_allowed(struct task_struct *task)
{
    for (u32 cpu = 0; cpu < cpu_count && cpu < CPUS_MAX; cpu++)
        if (bpf_cpumask_test_cpu(cpu, task->cpus_ptr))
            scx_bpf_kick_cpu((s32)cpu, SCX_KICK_IDLE);
}

/* Kicks the CPU of its last task, which it would leave waiting otherwise. */
static NO_INLINE void kick_for_last(u64 flags)
{
    if (flags & SCX_ENQ_LAST)
        scx_bpf_kick_cpu((s32)this_cpu(), 0);
}

/* A task that leaves its CPU while others wait needs no kick: the CPU has just dispatched. */
CALLBACK(void, central_enqueue)
{
    s32 pid = TASK(0)->pid;
    /* A task that may run on one CPU alone goes there, or it might starve. It preempts only when it
     * wakes: a task that was preempted itself would always be the next one. */
    if (TASK(0)->nr_cpus_allowed == 1) {
        u64 preempts = argument[1] & SCX_ENQ_WAKEUP ? SCX_ENQ_PREEMPT : 0;
        insert(TASK(0), SCX_DSQ_LOCAL, SCX_SLICE_INF, argument[1] | preempts);
        kick_for_last(argument[1]);
        return;
    }
    if (map_push(&waiting, &pid, 0)) {
        insert(TASK(0), FALLBACK, SCX_SLICE_INF, argument[1]);
        kick_allowed(TASK(0));
        return;
    }
    if (!scx_bpf_task_running(TASK(0)) || argument[1] & SCX_ENQ_LAST)
        scx_bpf_kick_cpu(central_cpu, SCX_KICK_PREEMPT);
}

/* Dispatches the next task that may run there. Returns whether there was one. */
static NO_INLINE bool dispatch_to(u32 cpu)
{
    for (u32 tries = 0; tries < 32; tries++) {
        s32 pid;
        if (map_pop(&waiting, &pid))
            return false;
        struct task_struct *task = bpf_task_from_pid(pid);
        if (!task) {
            __sync_fetch_and_add(&lost, 1);
            continue;
        }
        bool fits = bpf_cpumask_test_cpu(cpu, task->cpus_ptr);
        insert(task, fits ? SCX_DSQ_LOCAL_ON | cpu : FALLBACK, SCX_SLICE_INF, 0);
        if (!fits)
            kick_allowed(task);
        bpf_task_release(task);
        if (fits) {
            if (cpu != (u32)central_cpu)
                scx_bpf_kick_cpu((s32)cpu, SCX_KICK_IDLE);
            return true;
        }
        if (!scx_bpf_dispatch_nr_slots())
            return false;
    }
    return false;
}

static void dispatch_for_others(void)
{
    for (u32 cpu = 0; cpu < cpu_count && cpu < CPUS_MAX; cpu++) {
        struct cpu_state *state = map_lookup(&cpus, &cpu);
        if (!scx_bpf_dispatch_nr_slots())
            break;
        if (!state || !state->wants_task || cpu == (u32)central_cpu)
            continue;
        if (dispatch_to(cpu))
            state->wants_task = false;
    }
}

CALLBACK(void, central_dispatch)
{
    u32 cpu = (u32)argument[0];
    if (cpu == (u32)central_cpu) {
        dispatch_for_others();
        if (move_to_local(FALLBACK))
            return;
        dispatch_to(cpu);
        return;
    }
    if (move_to_local(FALLBACK))
        return;
    struct cpu_state *state = map_lookup(&cpus, &cpu);
    if (state)
        state->wants_task = true;
    __sync_fetch_and_add(&kicks, 1);
    scx_bpf_kick_cpu(central_cpu, SCX_KICK_PREEMPT);
}

CALLBACK(void, central_running)
{
    u32 cpu = this_cpu();
    struct cpu_state *state = map_lookup(&cpus, &cpu);
    if (state)
        state->started_at = time_ns() ? time_ns() : 1;
}

CALLBACK(void, central_stopping)
{
    u32 cpu = this_cpu();
    struct cpu_state *state = map_lookup(&cpus, &cpu);
    if (state)
        state->started_at = 0;
}

/* Preempts tasks that have used their time slice, if a task waits. */
static s32 preempt_late(void *map, u32 *key, struct central_timer *timer)
{
    (void)map, (void)key;
    u64 now = time_ns();
    for (u32 cpu = 0; cpu < cpu_count && cpu < CPUS_MAX; cpu++) {
        struct cpu_state *state = map_lookup(&cpus, &cpu);
        if (state && state->started_at && now - state->started_at >= slice_ns)
            scx_bpf_kick_cpu((s32)cpu, SCX_KICK_PREEMPT);
    }
    timer_start(&timer->timer, TIMER_NS, 0);
    return 0;
}

SLEEPING_CALLBACK(s32, central_init)
{
    u32 key = 0;
    s32 error = scx_bpf_create_dsq(FALLBACK, -1);
    if (error)
        return error;
    struct central_timer *timer = map_lookup(&timers, &key);
    if (!timer)
        return -NO_SUCH_ENTRY;
    timer_init(&timer->timer, &timers, 1);
    timer_set_callback(&timer->timer, (void *)preempt_late);
    return (s32)timer_start(&timer->timer, TIMER_NS, 0);
}

RECORD_EXIT(central_exit)

SECTION(".struct_ops.link")
struct sched_ext_ops central = {
    .select_cpu = (void *)central_select_cpu,
    .enqueue = (void *)central_enqueue,
    .dispatch = (void *)central_dispatch,
    .running = (void *)central_running,
    .stopping = (void *)central_stopping,
    .init = (void *)central_init,
    .exit = (void *)central_exit,
    .flags = OPS_ENQ_LAST,
    .name = "central",
};
