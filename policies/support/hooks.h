/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_HOOKS_H
#define SCHEDLAB_HOOKS_H

/*
 * How hosts call the hooks that a policy may leave out. Each function
 * implements the default, so that all hosts agree. In a BPF program `policy`
 * must be a constant: then everything folds into direct calls.
 */

#include "policies/placement.h"
#include "policies/policy.h"
#include "policies/support/flaws.h"

#define HOOK_FUNCTION static inline __attribute__((always_inline, unused))

/* Reports a CPU from place(), push() or balance() that does not exist (FLAW_CPU), or where the
 * task may not run (FLAW_PLACE). Another CPU is then taken. A host that can report it defines
 * the macro before. */
#ifndef NOTE_BAD_CPU
#define NOTE_BAD_CPU(scheduler, flaw) ((void)(scheduler))
#endif

HOOK_FUNCTION void policy_init_scheduler(const struct policy *policy, scheduler_t *scheduler)
{
    scheduler->follows_waits = false;
    scheduler->orders_waiters = false;
    if (policy->scheduler_init)
        policy->scheduler_init(scheduler);
}

HOOK_FUNCTION bool policy_wants_shared_queue(const struct policy *policy,
                                             const scheduler_t *scheduler)
{
    return policy->shared_queue && policy->shared_queue(scheduler);
}

/* Returns the number of run queues that the policy wants: one for all CPUs, or one for each. */
HOOK_FUNCTION uint32_t policy_run_queues(const struct policy *policy, const scheduler_t *scheduler)
{
    return policy_wants_shared_queue(policy, scheduler) ? 1 : scheduler->cpus;
}

HOOK_FUNCTION void policy_init_queue(const struct policy *policy, run_queue_t *queue)
{
    if (policy->queue_init)
        policy->queue_init(queue);
}

/* `parent` is null for an adopted task. */
HOOK_FUNCTION void policy_init_task(const struct policy *policy, scheduler_t *scheduler,
                                    task_t *task, const task_t *parent)
{
    if (policy->task_init)
        policy->task_init(scheduler, task, parent);
}

HOOK_FUNCTION void policy_exit_task(const struct policy *policy, scheduler_t *scheduler,
                                    task_t *task)
{
    if (policy->task_exit)
        policy->task_exit(scheduler, task);
}

HOOK_FUNCTION void policy_stop(const struct policy *policy, run_queue_t *queue, task_t *task,
                               enum stop_reason reason)
{
    if (policy->stopped)
        policy->stopped(queue, task, reason);
}

HOOK_FUNCTION bool policy_preempts(const struct policy *policy, run_queue_t *queue,
                                   const task_t *task, const task_t *running)
{
    return policy->preempts && policy->preempts(queue, task, running);
}

/* Returns the CPU if the task may run there, or else the lowest CPU that it may use. */
HOOK_FUNCTION uint32_t allowed_cpu(const scheduler_t *scheduler, const task_t *task, uint32_t cpu)
{
    return task_may_run_on(task, cpu) ? cpu : place_lowest(scheduler, task, cpu);
}

/* Returns an allowed CPU for a task that is forked or woken, or may no longer run where it was.
 * With one queue for all CPUs it is the task's own, if allowed. */
HOOK_FUNCTION uint32_t policy_place(const struct policy *policy, const scheduler_t *scheduler,
                                    const task_t *task, enum enqueue_reason reason)
{
    if (scheduler->queues == 1)
        return allowed_cpu(scheduler, task, task->cpu);
    uint32_t cpu =
        policy->place ? policy->place(scheduler, task, reason) : place_fewest(scheduler, task);
    if (cpu >= scheduler->queues) {
        NOTE_BAD_CPU(scheduler, FLAW_CPU);
        cpu = 0;
    } else if (task_may_run_on(task, cpu)) {
        return cpu;
    } else {
        NOTE_BAD_CPU(scheduler, FLAW_PLACE);
    }
    return allowed_cpu(scheduler, task, cpu);
}

/* Returns the result of push() or balance() of `cpu` as another queue's number, or NO_CPU. */
HOOK_FUNCTION uint32_t policy_other_queue(const scheduler_t *scheduler, uint32_t cpu,
                                          uint32_t named)
{
    if (named < scheduler->queues)
        return named != cpu ? named : NO_CPU;
    if (named != NO_CPU)
        NOTE_BAD_CPU(scheduler, FLAW_CPU);
    return NO_CPU;
}

/* Returns the queue that `cpu` should give a task to: below scheduler->queues and not its own,
 * or NO_CPU. */
HOOK_FUNCTION uint32_t policy_push(const struct policy *policy, const scheduler_t *scheduler,
                                   uint32_t cpu)
{
    if (scheduler->queues == 1)
        return NO_CPU;
    uint32_t to = policy->push ? policy->push(scheduler, cpu) : push_to_idle(scheduler, cpu);
    return policy_other_queue(scheduler, cpu, to);
}

/* Returns the queue that `cpu` should take a task from: below scheduler->queues and not its own,
 * or NO_CPU. */
HOOK_FUNCTION uint32_t policy_balance(const struct policy *policy, const scheduler_t *scheduler,
                                      uint32_t cpu, bool idle)
{
    if (scheduler->queues == 1)
        return NO_CPU;
    uint32_t from = policy->balance ? policy->balance(scheduler, cpu, idle)
                                    : balance_longest(scheduler, cpu, idle);
    return policy_other_queue(scheduler, cpu, from);
}

HOOK_FUNCTION task_t *policy_steal(const struct policy *policy, run_queue_t *queue, uint32_t cpu)
{
    return policy->steal ? policy->steal(queue, cpu) : policy->pick(queue, cpu);
}

HOOK_FUNCTION enum share_attribute policy_shares_by(const struct policy *policy,
                                                    const scheduler_t *scheduler)
{
    return policy->shares_by ? policy->shares_by(scheduler) : SHARES_EQUAL;
}

/* Returns the tickets for display. */
HOOK_FUNCTION uint64_t policy_tickets(const struct policy *policy, const scheduler_t *scheduler,
                                      const task_t *task)
{
    return policy->tickets ? policy->tickets(scheduler, task) : task->tickets;
}

/* Returns the level of a waiting task for display. */
HOOK_FUNCTION uint64_t policy_level(const struct policy *policy, const scheduler_t *scheduler,
                                    const task_t *task, uint64_t now)
{
    return policy->level ? policy->level(scheduler, task, now) : task->level;
}

/* Returns the number of parts of a ticket in a draw, for display: 1 or more. */
HOOK_FUNCTION uint64_t policy_ticket_parts(const struct policy *policy,
                                           const scheduler_t *scheduler)
{
    return policy->ticket_parts ? policy->ticket_parts(scheduler) : 1;
}

#endif
