/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A queue per CPU in the order of virtual times, with a mistake that `mistake` chooses: 0 is none.
 */
#include "../objects/scheduler.h"

enum mistake { NONE, WRAPS, IGNORES_PINS, KEEPS_CPU, IGNORES_WEIGHTS, IS_STALE, KEEPS_OFFLINE };
enum { WEIGHT_NORMAL = 100, CPUS_MAX = 1024, TASKS_MAX = 4096 };

const volatile u32 mistake;
const volatile u64 slice_ns = 5000000;
u64 vtime_now;
bool is_offline[CPUS_MAX];

struct task_state {
    u64 started_at;
    s32 cpu;
    bool has_cpu;
};
struct {
    NUMBER(type, MAP_TASK_STORAGE);
    NUMBER(map_flags, NO_PREALLOC);
    TYPE(key, s32);
    TYPE(value, struct task_state);
} tasks SECTION(".maps");

/* A waiting task, and the CPU that it could use when it was enqueued. */
struct entry {
    s32 pid;
    s32 cpu;
};
struct {
    NUMBER(type, MAP_QUEUE);
    NUMBER(max_entries, TASKS_MAX);
    TYPE(value, struct entry);
} entries SECTION(".maps");

CALLBACK(s32, mistaken_select_cpu)
{
    bool is_idle = false;
    s32 cpu = scx_bpf_select_cpu_dfl(TASK(0), (s32)argument[1], argument[2], &is_idle);
    if (is_idle)
        insert(TASK(0), SCX_DSQ_LOCAL, slice_ns, 0);
    return cpu;
}

/* Returns an idle CPU, or the CPU with the shortest queue. */
static NO_INLINE s32 best_cpu(const struct cpumask *allowed)
{
    s32 best = scx_bpf_pick_idle_cpu(allowed, 0);
    s32 shortest = 0;
    if (best >= 0)
        return best;
    for (u32 cpu = 0; cpu < scx_bpf_nr_cpu_ids() && cpu < CPUS_MAX; cpu++) {
        s32 length = scx_bpf_dsq_nr_queued(cpu);
        if (is_offline[cpu] && mistake != KEEPS_OFFLINE)
            continue;
        if (bpf_cpumask_test_cpu(cpu, allowed) && (best < 0 || length < shortest)) {
            best = (s32)cpu;
            shortest = length;
        }
    }
    return best;
}

static NO_INLINE s32 cpu_of(const struct task_struct *task, struct task_state *state)
{
    if (mistake == IGNORES_PINS)
        return task->pid % (s32)scx_bpf_nr_cpu_ids();
    if (mistake != KEEPS_CPU || !state->has_cpu)
        state->cpu = best_cpu(task->cpus_ptr);
    state->has_cpu = true;
    return state->cpu;
}

CALLBACK(void, mistaken_enqueue)
{
    u64 vtime = TASK(0)->scx.dsq_vtime;
    struct task_state *state = task_storage(&tasks, TASK(0), NULL, 0);
    if (!state)
        return;
    if (is_before(vtime, vtime_now - slice_ns))
        vtime = vtime_now - slice_ns;
    s32 cpu = cpu_of(TASK(0), state);
    struct entry entry = {TASK(0)->pid, cpu};
    if (mistake == IS_STALE && !map_push(&entries, &entry, 0)) {
        scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
        return;
    }
    insert_ordered(TASK(0), (u64)cpu, slice_ns, vtime, argument[1]);
    scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Dispatches the first entry, even if the task has another entry by now. */
static NO_INLINE bool dispatch_entry(void)
{
    struct entry entry;
    if (map_pop(&entries, &entry))
        return false;
    struct task_struct *task = bpf_task_from_pid(entry.pid);
    if (!task)
        return false;
    insert(task, SCX_DSQ_LOCAL_ON | (u64)entry.cpu, slice_ns, 0);
    scx_bpf_kick_cpu(entry.cpu, SCX_KICK_IDLE);
    bpf_task_release(task);
    return true;
}

CALLBACK(void, mistaken_dispatch)
{
    if (mistake == IS_STALE && dispatch_entry())
        return;
    for (u32 cpu = 0; cpu < scx_bpf_nr_cpu_ids() && cpu < CPUS_MAX; cpu++) {
        if (is_offline[cpu] && mistake != KEEPS_OFFLINE && move_to_local(cpu))
            return;
    }
    move_to_local(argument[0]);
}

CALLBACK(void, mistaken_cpu_offline)
{
    u32 cpu = (u32)argument[0];
    if (cpu < CPUS_MAX)
        is_offline[cpu] = true;
    for (u32 other = 0; other < scx_bpf_nr_cpu_ids(); other++)
        scx_bpf_kick_cpu((s32)other, SCX_KICK_IDLE);
}

CALLBACK(void, mistaken_cpu_online)
{
    u32 cpu = (u32)argument[0];
    if (cpu < CPUS_MAX)
        is_offline[cpu] = false;
}

CALLBACK(void, mistaken_running)
{
    struct task_state *state = task_storage(&tasks, TASK(0), NULL, 0);
    if (state)
        state->started_at = time_ns();
    if (is_before(vtime_now, TASK(0)->scx.dsq_vtime))
        vtime_now = TASK(0)->scx.dsq_vtime;
}

/* The kernel gives a task that stays alone a slice that is longer than `slice_ns`. */
CALLBACK(void, mistaken_stopping)
{
    const struct task_state *state = task_storage(&tasks, TASK(0), NULL, 0);
    u64 weight = mistake == IGNORES_WEIGHTS ? WEIGHT_NORMAL : TASK(0)->scx.weight;
    u64 used = state ? time_ns() - state->started_at : 0;
    if (mistake == WRAPS)
        used = slice_ns - TASK(0)->scx.slice;
    TASK(0)->scx.dsq_vtime += used * WEIGHT_NORMAL / weight;
}

CALLBACK(s32, mistaken_init_task)
{
    return task_storage(&tasks, TASK(0), NULL, STORAGE_CREATE) ? 0 : -NO_MEMORY;
}

CALLBACK(void, mistaken_enable)
{
    TASK(0)->scx.dsq_vtime = vtime_now;
}

CALLBACK(s32, mistaken_init)
{
    s32 error = 0;
    for (u32 cpu = 0; cpu < scx_bpf_nr_cpu_ids() && cpu < CPUS_MAX && !error; cpu++)
        error = scx_bpf_create_dsq(cpu, -1);
    return error;
}

SECTION(".struct_ops.link")
struct sched_ext_ops mistaken = {
    .select_cpu = (void *)mistaken_select_cpu,
    .enqueue = (void *)mistaken_enqueue,
    .dispatch = (void *)mistaken_dispatch,
    .running = (void *)mistaken_running,
    .stopping = (void *)mistaken_stopping,
    .init_task = (void *)mistaken_init_task,
    .enable = (void *)mistaken_enable,
    .cpu_online = (void *)mistaken_cpu_online,
    .cpu_offline = (void *)mistaken_cpu_offline,
    .init = (void *)mistaken_init,
    .name = "mistaken",
};
