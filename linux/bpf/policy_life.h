/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_POLICY_LIFE_H
#define LINUX_BPF_POLICY_LIFE_H

/* The policy begins and ends. */

#include "policy_times.h"

/* A policy that comes back must find no old state; queues are cleared when they begin. */
static __noinline void clear_host(void)
{
    uint64_t SHARED_MEMORY *words = (uint64_t SHARED_MEMORY *)host;
    uint32_t count = unseen(__builtin_offsetof(struct host, queues) / sizeof(uint64_t));
    for (uint32_t i = unseen(0); i < count && can_loop; i++)
        words[i] = 0;
}

#define SHAPE_WORDS (sizeof(struct machine_shape) / sizeof(uint64_t))
_Static_assert(sizeof(struct machine_shape) % sizeof(uint64_t) == 0, "it is copied by words");

/* Policies read the shape only in the arena. */
static __noinline void take_shape(const struct machine_shape *given)
{
    const uint64_t *from = (const uint64_t *)given;
    uint64_t SHARED_MEMORY *to = (uint64_t SHARED_MEMORY *)&host->shape;
    for (uint32_t i = unseen(0); i < SHAPE_WORDS && can_loop; i++) {
        uint64_t word = unseen(i); /* otherwise the compiler steps a pointer, and the verifier does
                                    * not know its end */
        if (word < SHAPE_WORDS)
            to[word] = from[word];
    }
    host->scheduler.shape = &host->shape;
}

static __noinline void init_scheduler(const struct host_settings *values)
{
    uint32_t key = 0;
    clear_host();
    struct machine_shape *given = bpf_map_lookup_elem(&shape_given, &key);
    if (given)
        take_shape(given);
    host->scheduler.cpus = values->cpus;
    host->scheduler.tick_ns = values->tick_ns;
    host->scheduler.seed = values->seed;
    for (uint32_t i = 0; i < HOST_TUNABLES; i++)
        host->scheduler.tunable[i] = values->tunable[i];
    host->scheduler.state = host->policy_state;
    host->users_groups = values->users_groups;
    policy_init_scheduler(&POLICY, &host->scheduler);
    host->scheduler.queues = policy_run_queues(&POLICY, &host->scheduler);
}

static __noinline void init_queues(void)
{
    for (uint32_t cpu = unseen(0); cpu < host->scheduler.cpus && can_loop; cpu++) {
        queue_t *queue = &host->queues[cpu % POLICY_CPUS_MAX];
        queue->view.now = clock_ns();
        queue->view.state = queue->policy_state;
        queue->alarm_timer = 0;
        run_queue_begin(&POLICY, &host->scheduler, &queue->view, cpu);
    }
}

SEC("struct_ops.s/init")
s32 BPF_PROG(host_init)
{
    USE_ARENA();
    uint32_t key = 0;
    struct host_settings *values = bpf_map_lookup_elem(&settings, &key);
    if (!values || values->cpus == 0 || values->cpus > POLICY_CPUS_MAX)
        return -EINVAL;
    if (!host)
        host = bpf_arena_alloc_pages(&arena, NULL, HOST_PAGES, -1, 0);
    if (!host)
        return -ENOMEM;
    flaw = FLAW_NONE;
    init_scheduler(values);
    init_queues();
    return POLICY_USES_TIMES ? init_timers() : 0;
}

SEC("struct_ops.s/exit")
void BPF_PROG(host_exit, struct scx_exit_info *information)
{
    uint32_t key = 0;
    struct host_exit *exit_record = bpf_map_lookup_elem(&exit_info, &key);
    if (POLICY_USES_TIMES)
        cancel_timers();
    if (!exit_record)
        return;
    bpf_probe_read_kernel_str(exit_record->reason, sizeof(exit_record->reason),
                              information->reason);
    bpf_probe_read_kernel_str(exit_record->message, sizeof(exit_record->message), information->msg);
    exit_record->exit_code = information->exit_code;
    exit_record->kind = (int32_t)information->kind;
    ask_loader(REQUEST_EXITED, 0);
}

#endif
