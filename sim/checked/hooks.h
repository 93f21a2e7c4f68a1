/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKED_HOOKS_H
#define SIM_CHECKED_HOOKS_H

/*
 * Wraps each hook of the policy: checks that its result is possible, and that it does not change
 * the host's data.
 *
 * An engine compiled with CHECKED calls these wrappers, and calls hooks without a wrapper directly.
 */

#include "sim/checked/watch.h"

#define CHECKED_POLICY checked_policy

/* Notes the called hook, its queue and its task, and copies the host's data. */
#define CALL_HOOK(hook, queue_, task_)                                                             \
    watch_begin((struct watch_call){.policy = &POLICY,                                             \
                                    .name = #hook,                                                 \
                                    .function = (uint64_t)POLICY.hook,                             \
                                    .queue = (queue_),                                             \
                                    .task = (task_),                                               \
                                    .changes_task =                                                \
                                        _Generic((task_), const task_t *: false, default: true)})

/*
 * Lists the checked hooks. ACT(hook, parameters, arguments, queue, task) is for hooks without a
 * result, and GIVE(type, hook, parameters, arguments, queue, task, watch) for hooks with a
 * `result`, which the function `watch` checks.
 */
#define WATCHED_HOOKS(ACT, GIVE)                                                                   \
    ACT(scheduler_init, (scheduler_t * scheduler), (scheduler), NULL, NULL)                        \
    ACT(queue_init, (run_queue_t * queue), (queue), NULL, NULL)                                    \
    ACT(task_init, (scheduler_t * scheduler, task_t * task, const task_t *parent),                 \
        (scheduler, task, parent), NULL, task)                                                     \
    ACT(task_exit, (scheduler_t * scheduler, task_t * task), (scheduler, task), NULL, task)        \
    ACT(enqueue, (run_queue_t * queue, task_t * task, enum enqueue_reason reason),                 \
        (queue, task, reason), queue, task)                                                        \
    ACT(dequeue, (run_queue_t * queue, task_t * task), (queue, task), queue, task)                 \
    ACT(stopped, (run_queue_t * queue, task_t * task, enum stop_reason reason),                    \
        (queue, task, reason), queue, task)                                                        \
    ACT(changed, (run_queue_t * queue, task_t * task), (queue, task), queue, task)                 \
    ACT(leave, (run_queue_t * queue, task_t * task), (queue, task), queue, task)                   \
    GIVE(task_t *, pick, (run_queue_t * queue, uint32_t cpu), (queue, cpu), queue, NULL,           \
         (watch_taken(result, cpu, true), watch_decision(cpu, result)))                            \
    GIVE(task_t *, steal, (run_queue_t * queue, uint32_t cpu), (queue, cpu), queue, NULL,          \
         watch_taken(result, cpu, false))                                                          \
    GIVE(task_t *, alarm, (run_queue_t * queue), (queue), queue, NULL,                             \
         watch_taken(result, NO_CPU, false))                                                       \
    GIVE(enum tick_verdict, tick, (run_queue_t * queue, task_t * task), (queue, task), queue,      \
         task, watch_verdict(result))                                                              \
    GIVE(enum tick_verdict, turn_over, (run_queue_t * queue, task_t * task), (queue, task), queue, \
         task, watch_verdict(result))                                                              \
    GIVE(uint64_t, time_slice, (const scheduler_t *scheduler, const task_t *task),                 \
         (scheduler, task), scheduler->queue[0], task, watch_slice(result))                        \
    GIVE(bool, waiters_changed, (run_queue_t * queue, task_t * owner), (queue, owner), queue,      \
         owner, (void)0)                                                                           \
    GIVE(bool, overtakes, (run_queue_t * queue, const task_t *waiter, const task_t *chosen),       \
         (queue, waiter, chosen), queue, waiter, (void)0)                                          \
    GIVE(bool, preempts, (run_queue_t * queue, const task_t *task, const task_t *running),         \
         (queue, task, running), queue, task, (void)0)                                             \
    GIVE(uint32_t, place,                                                                          \
         (const scheduler_t *scheduler, const task_t *task, enum enqueue_reason reason),           \
         (scheduler, task, reason), NULL, task, watch_cpu(result, false))                          \
    GIVE(uint32_t, push, (const scheduler_t *scheduler, uint32_t cpu), (scheduler, cpu), NULL,     \
         NULL, watch_cpu(result, true))                                                            \
    GIVE(uint32_t, balance, (const scheduler_t *scheduler, uint32_t cpu, bool idle),               \
         (scheduler, cpu, idle), NULL, NULL, watch_cpu(result, true))

#define WATCH_ACT(hook, parameters, arguments, queue_, task_)                                      \
    static void checked_##hook parameters                                                          \
    {                                                                                              \
        CALL_HOOK(hook, queue_, task_);                                                            \
        POLICY.hook arguments;                                                                     \
        watch_end();                                                                               \
    }

#define WATCH_RESULT(type, hook, parameters, arguments, queue_, task_, watch)                      \
    static type checked_##hook parameters                                                          \
    {                                                                                              \
        CALL_HOOK(hook, queue_, task_);                                                            \
        type result = POLICY.hook arguments;                                                       \
        watch;                                                                                     \
        watch_end();                                                                               \
        return result;                                                                             \
    }

WATCHED_HOOKS(WATCH_ACT, WATCH_RESULT)

static struct policy checked_policy;

/* Defines the wrapper of a hook. A hook that the policy does not define has none. */
#define WRAP_ACT(hook, ...)                                                                        \
    if (POLICY.hook)                                                                               \
        checked_policy.hook = checked_##hook;
#define WRAP_RESULT(type, hook, ...) WRAP_ACT(hook)

/* The hooks that return a task. */
static task_t *heard_pick(run_queue_t *queue, uint32_t cpu)
{
    return watch_is_silent(queue, cpu) ? NULL : checked_pick(queue, cpu);
}

static task_t *heard_steal(run_queue_t *queue, uint32_t cpu)
{
    return watch_is_silent(queue, cpu) ? NULL : checked_steal(queue, cpu);
}

static __attribute__((constructor)) void wrap_hooks(void)
{
    checked_policy = POLICY;
    WATCHED_HOOKS(WRAP_ACT, WRAP_RESULT)
    checked_policy.pick = heard_pick;
    if (POLICY.steal)
        checked_policy.steal = heard_steal;
}

#endif
