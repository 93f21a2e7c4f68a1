/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKED_HOOKS_H
#define SIM_CHECKED_HOOKS_H

/*
 * The policy's hooks, each of which is watched: what it returns must be possible, and what is
 * the host's must be as it was before. An engine that is compiled with CHECKED calls these; a hook
 * that is not wrapped here is called as it is.
 */

#include "sim/checked/watch.h"

#define CHECKED_POLICY checked_policy

/* Remembers which hook is called for which task, and what is the host's. */
#define CALL_HOOK(hook, queue_, task_)                                                             \
    watch_begin((struct watch_call){.policy = &POLICY,                                             \
                                    .name = #hook,                                                 \
                                    .function = (uint64_t)POLICY.hook,                             \
                                    .queue = (queue_),                                             \
                                    .task = (task_)})

static void checked_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    CALL_HOOK(enqueue, queue, task);
    POLICY.enqueue(queue, task, reason);
    watch_end();
}

static void checked_dequeue(run_queue_t *queue, task_t *task)
{
    CALL_HOOK(dequeue, queue, task);
    POLICY.dequeue(queue, task);
    watch_end();
}

static task_t *checked_pick(run_queue_t *queue, uint32_t cpu)
{
    CALL_HOOK(pick, queue, NULL);
    task_t *task = POLICY.pick(queue, cpu);
    watch_taken(task, true);
    watch_decision(cpu, task);
    watch_end();
    return task;
}

static task_t *checked_steal(run_queue_t *queue, uint32_t cpu)
{
    CALL_HOOK(steal, queue, NULL);
    task_t *task = POLICY.steal(queue, cpu);
    watch_taken(task, false);
    watch_end();
    return task;
}

static enum tick_verdict checked_tick(run_queue_t *queue, task_t *task)
{
    CALL_HOOK(tick, queue, task);
    enum tick_verdict verdict = POLICY.tick(queue, task);
    watch_verdict(verdict);
    watch_end();
    return verdict;
}

static uint64_t checked_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    CALL_HOOK(time_slice, scheduler->queue[0], task);
    uint64_t slice = POLICY.time_slice(scheduler, task);
    watch_slice(slice);
    watch_end();
    return slice;
}

static void checked_scheduler_init(scheduler_t *scheduler)
{
    CALL_HOOK(scheduler_init, NULL, NULL);
    POLICY.scheduler_init(scheduler);
    watch_end();
}

static void checked_queue_init(run_queue_t *queue)
{
    CALL_HOOK(queue_init, queue, NULL);
    POLICY.queue_init(queue);
    watch_end();
}

static void checked_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    CALL_HOOK(task_init, NULL, task);
    POLICY.task_init(scheduler, task, parent);
    watch_end();
}

static void checked_task_exit(scheduler_t *scheduler, task_t *task)
{
    CALL_HOOK(task_exit, NULL, task);
    POLICY.task_exit(scheduler, task);
    watch_end();
}

static void checked_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    CALL_HOOK(stopped, queue, task);
    POLICY.stopped(queue, task, reason);
    watch_end();
}

static enum tick_verdict checked_turn_over(run_queue_t *queue, task_t *task)
{
    CALL_HOOK(turn_over, queue, task);
    enum tick_verdict verdict = POLICY.turn_over(queue, task);
    watch_verdict(verdict);
    watch_end();
    return verdict;
}

static task_t *checked_alarm(run_queue_t *queue)
{
    CALL_HOOK(alarm, queue, NULL);
    task_t *task = POLICY.alarm(queue);
    watch_taken(task, false);
    watch_end();
    return task;
}

static void checked_changed(run_queue_t *queue, task_t *task)
{
    CALL_HOOK(changed, queue, task);
    POLICY.changed(queue, task);
    watch_end();
}

static void checked_leave(run_queue_t *queue, task_t *task)
{
    CALL_HOOK(leave, queue, task);
    POLICY.leave(queue, task);
    watch_end();
}

static bool checked_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    CALL_HOOK(preempts, queue, task);
    bool preempts = POLICY.preempts(queue, task, running);
    watch_end();
    return preempts;
}

static uint32_t checked_place(const scheduler_t *scheduler, const task_t *task,
                              enum enqueue_reason reason)
{
    CALL_HOOK(place, NULL, task);
    uint32_t cpu = POLICY.place(scheduler, task, reason);
    watch_cpu(cpu, false);
    watch_end();
    return cpu;
}

static uint32_t checked_push(const scheduler_t *scheduler, uint32_t cpu)
{
    CALL_HOOK(push, NULL, NULL);
    uint32_t to = POLICY.push(scheduler, cpu);
    watch_cpu(to, true);
    watch_end();
    return to;
}

static uint32_t checked_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    CALL_HOOK(balance, NULL, NULL);
    uint32_t from = POLICY.balance(scheduler, cpu, idle);
    watch_cpu(from, true);
    watch_end();
    return from;
}

static struct policy checked_policy;

/* A hook that the policy leaves out stays left out. */
#define WRAP_HOOK(hook)                                                                            \
    if (POLICY.hook)                                                                               \
    checked_policy.hook = checked_##hook

static __attribute__((constructor)) void wrap_hooks(void)
{
    checked_policy = POLICY;
    WRAP_HOOK(enqueue);
    WRAP_HOOK(dequeue);
    WRAP_HOOK(pick);
    WRAP_HOOK(steal);
    WRAP_HOOK(tick);
    WRAP_HOOK(time_slice);
    WRAP_HOOK(scheduler_init);
    WRAP_HOOK(queue_init);
    WRAP_HOOK(task_init);
    WRAP_HOOK(task_exit);
    WRAP_HOOK(stopped);
    WRAP_HOOK(turn_over);
    WRAP_HOOK(alarm);
    WRAP_HOOK(changed);
    WRAP_HOOK(leave);
    WRAP_HOOK(preempts);
    WRAP_HOOK(place);
    WRAP_HOOK(push);
    WRAP_HOOK(balance);
}

#endif
