/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Five FIFOs in queue maps. Heavier tasks go to queues that a round of dispatches empties further.
 */
#include "scheduler.h"

enum { QUEUES = 5, TASKS_MAX = 4096 };

const volatile u64 slice_ns = 20000000;
u64 overflows;

struct queue {
    NUMBER(type, MAP_QUEUE);
    NUMBER(max_entries, TASKS_MAX);
    TYPE(value, s32);
};
struct queue queue0 SECTION(".maps");
struct queue queue1 SECTION(".maps");
struct queue queue2 SECTION(".maps");
struct queue queue3 SECTION(".maps");
struct queue queue4 SECTION(".maps");

struct {
    NUMBER(type, MAP_ARRAY_OF_MAPS);
    NUMBER(max_entries, QUEUES);
    NUMBER(key_size, 4);
    struct queue *values[QUEUES];
} queues SECTION(".maps") = {.values = {&queue0, &queue1, &queue2, &queue3, &queue4}};

struct task_state {
    bool may_go_directly;
    u64 enqueued;
};
struct {
    NUMBER(type, MAP_TASK_STORAGE);
    NUMBER(map_flags, NO_PREALLOC);
    TYPE(key, s32);
    TYPE(value, struct task_state);
} tasks SECTION(".maps");

struct cpu_state {
    u64 queue; /* that this CPU takes tasks from */
    u64 taken; /* from it, in this round */
};
struct {
    NUMBER(type, MAP_PERCPU_ARRAY);
    NUMBER(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct cpu_state);
} cpus SECTION(".maps");

static NO_INLINE u32 queue_of(u32 weight)
{
    return weight <= 25 ? 0 : weight <= 50 ? 1 : weight < 200 ? 2 : weight < 400 ? 3 : 4;
}

CALLBACK(s32, five_select_cpu)
{
    bool is_idle = false;
    s32 cpu = scx_bpf_select_cpu_dfl(TASK(0), (s32)argument[1], argument[2], &is_idle);
    struct task_state *state = task_storage(&tasks, TASK(0), NULL, 0);
    if (state)
        state->may_go_directly = is_idle;
    return cpu;
}

CALLBACK(void, five_enqueue)
{
    s32 pid = TASK(0)->pid;
    u32 index = queue_of(TASK(0)->scx.weight);
    struct task_state *state = task_storage(&tasks, TASK(0), NULL, 0);
    if (!state) {
        scx_bpf_error_bstr((char *)"no state of a task", NULL, 0);
        return;
    }
    state->enqueued++;
    if (state->may_go_directly) {
        state->may_go_directly = false;
        insert(TASK(0), SCX_DSQ_LOCAL, slice_ns, argument[1]);
        return;
    }
    void *queue = map_lookup(&queues, &index);
    if (!queue || map_push(queue, &pid, 0)) {
        __sync_fetch_and_add(&overflows, 1);
        insert(TASK(0), SCX_DSQ_GLOBAL, slice_ns, argument[1]);
    }
}

/* Moves a task of a queue to the global queue, where each CPU may take it. */
static NO_INLINE bool dispatch_from(u32 index)
{
    s32 pid;
    void *queue = map_lookup(&queues, &index);
    if (!queue || map_pop(queue, &pid))
        return false;
    struct task_struct *task = bpf_task_from_pid(pid);
    if (!task)
        return false;
    insert(task, SCX_DSQ_GLOBAL, slice_ns, 0);
    bpf_task_release(task);
    return true;
}

CALLBACK(void, five_dispatch)
{
    u32 key = 0;
    struct cpu_state *state = map_lookup(&cpus, &key);
    if (!state)
        return;
    for (u32 tries = 0; tries < 2 * QUEUES; tries++) {
        if (state->taken >= 1ULL << state->queue) {
            state->queue = (state->queue + 1) % QUEUES;
            state->taken = 0;
        }
        if (dispatch_from((u32)state->queue)) {
            state->taken++;
            return;
        }
        state->taken = 1ULL << state->queue;
    }
}

SLEEPING_CALLBACK(s32, five_init_task)
{
    return task_storage(&tasks, TASK(0), NULL, STORAGE_CREATE) ? 0 : -NO_MEMORY;
}

RECORD_EXIT(five_exit)

SECTION(".struct_ops.link")
struct sched_ext_ops five = {
    .select_cpu = (void *)five_select_cpu,
    .enqueue = (void *)five_enqueue,
    .dispatch = (void *)five_dispatch,
    .init_task = (void *)five_init_task,
    .exit = (void *)five_exit,
    .name = "five",
};
