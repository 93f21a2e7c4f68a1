/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Checks that a policy compiles as a BPF program. Built with
 *
 *     -DPOLICY_SOURCE='"policies/rr.c"' -DPOLICY=policy_rr
 *
 * this calls each hook from a separate program, so that the compiler must emit
 * all of it. Not for loading: it takes the hooks' arguments from the program's
 * context, while the real adapter finds them in its arena.
 */

#include "bpf_types.h"

#include "policies/policy.h"

#include "policies/support/hooks.h"

#include POLICY_SOURCE

struct arguments {
    scheduler_t *scheduler;
    run_queue_t *queue;
    task_t *task;
    task_t *other;
    uint32_t cpu;
    uint32_t reason;
};

SECTION("struct_ops/enqueue") int call_enqueue(struct arguments *arguments)
{
    POLICY.enqueue(arguments->queue, arguments->task, (enum enqueue_reason)arguments->reason);
    return 0;
}

SECTION("struct_ops/dequeue") int call_dequeue(struct arguments *arguments)
{
    POLICY.dequeue(arguments->queue, arguments->task);
    return 0;
}

SECTION("struct_ops/pick") int call_pick(struct arguments *arguments)
{
    arguments->task = POLICY.pick(arguments->queue, arguments->cpu);
    return 0;
}

SECTION("struct_ops/tick") int call_tick(struct arguments *arguments)
{
    return (int)POLICY.tick(arguments->queue, arguments->task);
}

SECTION("struct_ops/time_slice") int call_time_slice(struct arguments *arguments)
{
    return (int)POLICY.time_slice(arguments->scheduler, arguments->task);
}

SECTION("struct_ops/init") int call_init(struct arguments *arguments)
{
    policy_init_scheduler(&POLICY, arguments->scheduler);
    policy_init_queue(&POLICY, arguments->queue);
    return policy_wants_shared_queue(&POLICY, arguments->scheduler);
}

SECTION("struct_ops/task_init") int call_task_init(struct arguments *arguments)
{
    policy_init_task(&POLICY, arguments->scheduler, arguments->task, arguments->other);
    return 0;
}

SECTION("struct_ops/task_exit") int call_task_exit(struct arguments *arguments)
{
    policy_exit_task(&POLICY, arguments->scheduler, arguments->task);
    return 0;
}

SECTION("struct_ops/stopped") int call_stopped(struct arguments *arguments)
{
    policy_stop(&POLICY, arguments->queue, arguments->task, (enum stop_reason)arguments->reason);
    return 0;
}

SECTION("struct_ops/preempts") int call_preempts(struct arguments *arguments)
{
    return policy_preempts(&POLICY, arguments->queue, arguments->task, arguments->other);
}

SECTION("struct_ops/place") int call_place(struct arguments *arguments)
{
    return (int)policy_place(&POLICY, arguments->scheduler, arguments->task,
                             (enum enqueue_reason)arguments->reason);
}

SECTION("struct_ops/balance") int call_balance(struct arguments *arguments)
{
    return (int)policy_balance(&POLICY, arguments->scheduler, arguments->cpu,
                               arguments->reason != 0);
}

SECTION("struct_ops/steal") int call_steal(struct arguments *arguments)
{
    arguments->task = policy_steal(&POLICY, arguments->queue, arguments->cpu);
    return 0;
}
