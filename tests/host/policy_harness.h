/* SPDX-License-Identifier: MIT */
#ifndef TESTS_HOST_POLICY_HARNESS_H
#define TESTS_HOST_POLICY_HARNESS_H

/*
 * A model of a machine with several CPUs, for tests of policies: run queues, tasks and ticks,
 * without costs. It calls a policy's hooks as the kernel does, in the order of
 * docs/policy-interface.md, and checks at every step
 *
 *   - that each task is on one queue, on one CPU, or on none, and never lost: a policy returns only
 *     tasks of that queue, and returns a task as long as one is queued;
 *   - that a policy changes only its own state;
 *   - that no CPU is idle while its queue holds a task that may run on it, and that a policy
 * returns a task only for CPUs in its affinity mask.
 *
 * State has its exact size, so that AddressSanitizer detects a policy that accesses memory beyond
 * it. The program that includes this file links a table of policies and the registry.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../abi/process_info.h"
#include "../../abi/trace_format.h"
#include "../../policies/registry.h"
#include "../../policies/support/attributes.h"
#include "../../policies/support/hooks.h"
#include "../../policies/support/waits.h"
#include "check.h"

#define MODEL_CPUS_MAX 16
#ifndef MODEL_TICK_NS
#define MODEL_TICK_NS 10000000ull
#endif

enum model_place { MODEL_NEW, MODEL_QUEUED, MODEL_RUNNING, MODEL_BLOCKED, MODEL_ENDED };

enum model_attribute {
    MODEL_PRIORITY = ATTRIBUTE_PRIORITY,
    MODEL_TICKETS = ATTRIBUTE_TICKETS,
    MODEL_WEIGHT = ATTRIBUTE_WEIGHT,
    MODEL_NICE = ATTRIBUTE_NICE,
    MODEL_SLICE = ATTRIBUTE_SLICE,
    MODEL_RUNTIME = ATTRIBUTE_RUNTIME,
    MODEL_DEADLINE = ATTRIBUTE_DEADLINE,
    MODEL_PERIOD = ATTRIBUTE_PERIOD,
};

struct model_task {
    struct task task;
    enum model_place place;
    uint32_t queue;      /* queue that holds the task */
    uint32_t generation; /* generation of the policy that knows it; 0: none */
    uint64_t wake_at;    /* wake-up time of a blocked task; 0: no timer */
    uint64_t wake_order; /* order of the timer's start */
    uint32_t wake_cpu;   /* CPU of the timer */
    bool unreaped; /* has ended, and keeps its slot: set by a program that simulates parents */
};

struct model_cpu {
    struct model_task *current;
    uint64_t turn_end; /* time to call turn_over(); 0: never */
    uint64_t entered;  /* time of the switch to the current task */
    bool reschedule;
    enum preempt_reason why; /* reason to pick again */
    bool moves;              /* the task whose slice ended will be placed again */
};

struct model;

/* Receives events, as the kernel's trace does (docs/trace-format.md). */
typedef void model_recorder(const struct model *model, enum trace_kind kind, int32_t process,
                            uint32_t first, uint64_t second);

struct model {
    const struct policy *policy;
    uint32_t generation;
    uint64_t now;
    uint64_t timers; /* number of started timers */
    struct scheduler scheduler;
    struct run_queue queues[MODEL_CPUS_MAX];
    struct model_cpu cpus[MODEL_CPUS_MAX];
    uint32_t acting_cpu;       /* the CPU that acts now */
    const struct cpu_set *set; /* affinity of new tasks; null: all CPUs */
    bool silent;               /* the policy is not asked for CPUs that no queued task may use */
    bool (*acts_first)(
        uint32_t cpu); /* whether the CPU's task acts first at the end of its slice; null: never */
    model_recorder *recorder;  /* null: none */
    struct model_task **tasks; /* in the order of forks, including ended tasks */
    uint32_t task_count;
    int32_t last_pid;
    uint64_t picks;
    uint64_t pick_hash; /* hash of all picks: task, CPU and order */
    char log[4096];     /* picks since model_clear_log(), as "3" or, with several CPUs, "1:3" */
    size_t log_length;
};

/* ---- state that a policy must not change ---- */

struct model_snapshot {
    struct task task;
    struct run_queue queue;
    char scheduler[offsetof(struct scheduler, queue)];
    run_queue_t *queues[MODEL_CPUS_MAX];
};

static inline void model_remember(struct model_snapshot *before, const struct model *model,
                                  const struct run_queue *queue, const struct task *task)
{
    const size_t pointers = model->scheduler.cpus * sizeof(void *);
    memcpy(before->scheduler, &model->scheduler, sizeof(before->scheduler));
    memcpy(before->queues, model->scheduler.queue, pointers);
    if (queue)
        memcpy(&before->queue, queue, sizeof(before->queue));
    if (task)
        memcpy(&before->task, task, sizeof(before->task));
}

static inline void model_compare(const struct model_snapshot *before, const struct model *model,
                                 const struct run_queue *queue, const struct task *task)
{
    const size_t pointers = model->scheduler.cpus * sizeof(void *);
    check(memcmp(before->scheduler, &model->scheduler, sizeof(before->scheduler)) == 0);
    check(memcmp(before->queues, model->scheduler.queue, pointers) == 0);
    if (queue) {
        check(memcmp(&before->queue, queue, offsetof(struct run_queue, remark)) == 0);
        check(before->queue.state == queue->state);
    }
    if (task) {
        check(memcmp(&before->task, task, offsetof(struct task, level)) == 0);
        check(before->task.state == task->state);
    }
}

/* ---- recorded events ---- */

static inline void model_record(const struct model *model, enum trace_kind kind, int32_t process,
                                uint32_t first, uint64_t second)
{
    if (model->recorder)
        model->recorder(model, kind, process, first, second);
}

static inline int32_t model_pid(const struct model_task *task)
{
    return task ? task->task.pid : 0;
}

static inline int32_t model_running(const struct model *model, uint32_t cpu)
{
    return model_pid(model->cpus[cpu].current);
}

/* ---- calls of hooks ---- */

static inline struct run_queue *model_queue(struct model *model, uint32_t cpu)
{
    struct run_queue *queue = &model->queues[model->scheduler.queues == 1 ? 0 : cpu];
    queue->now = model->now;
    return queue;
}

static inline struct model_task *model_task_of(struct task *task)
{
    return (struct model_task *)((char *)task - offsetof(struct model_task, task));
}

static inline bool model_knows(const struct model *model, const struct model_task *task)
{
    return task->generation == model->generation;
}

static inline void model_introduce(struct model *model, struct model_task *task,
                                   const struct model_task *parent)
{
    struct model_snapshot before;
    memset(task->task.state, 0, POLICY_TASK_BYTES);
    task->task.level = 0;
    task->task.lent = 0;
    task->task.next = task->task.previous = NULL;
    model_remember(&before, model, NULL, &task->task);
    policy_init_task(model->policy, &model->scheduler, &task->task,
                     parent && model_knows(model, parent) ? &parent->task : NULL);
    model_compare(&before, model, NULL, &task->task);
    task->generation = model->generation;
}

static inline void model_enqueue(struct model *model, struct run_queue *queue,
                                 struct model_task *task, enum enqueue_reason reason,
                                 const struct model_task *parent)
{
    struct model_snapshot before;
    check(task->place != MODEL_QUEUED && task->place != MODEL_ENDED);
    if (!model_knows(model, task)) {
        model_introduce(model, task, parent);
        reason = reason == ENQUEUE_NEW ? reason : ENQUEUE_ADOPTED;
    }
    task->place = MODEL_QUEUED;
    task->queue = queue->cpu;
    task->task.queued_since = model->now;
    queue->bound = queue->bound || task->task.cpus;
    model_remember(&before, model, queue, &task->task);
    model->policy->enqueue(queue, &task->task, reason);
    model_compare(&before, model, queue, &task->task);
    queue->queued++;
}

static inline void model_taken(struct model *model, struct run_queue *queue,
                               struct model_task *task)
{
    check(task->place == MODEL_QUEUED && task->queue == queue->cpu && model_knows(model, task));
    check(queue->queued > 0);
    task->place = MODEL_BLOCKED;
    queue->queued--;
}

static inline void model_dequeue(struct model *model, struct model_task *task)
{
    struct model_snapshot before;
    struct run_queue *queue = model_queue(model, task->queue);
    model_remember(&before, model, queue, &task->task);
    model->policy->dequeue(queue, &task->task);
    model_compare(&before, model, queue, &task->task);
    model_taken(model, queue, task);
}

/* Returns the number of queued tasks that may run on the CPU. */
static inline uint32_t model_queued_for(const struct model *model, const struct run_queue *queue,
                                        uint32_t cpu)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->task_count; i++) {
        const struct model_task *task = model->tasks[i];
        count += task->place == MODEL_QUEUED && task->queue == queue->cpu &&
                 task_may_run_on(&task->task, cpu);
    }
    return count;
}

/* Returns whether the policy is not asked for a task for the CPU. */
static inline bool model_is_silent(const struct model *model, const struct run_queue *queue,
                                   uint32_t cpu)
{
    return model->silent && queue->queued > 0 && model_queued_for(model, queue, cpu) == 0;
}

static inline struct model_task *model_pick(struct model *model, struct run_queue *queue,
                                            uint32_t cpu)
{
    struct model_snapshot before;
    queue->remark = 0;
    queue->turn_end = 0;
    if (model_is_silent(model, queue, cpu))
        return NULL;
    model_remember(&before, model, queue, NULL);
    struct task *task = model->policy->pick(queue, cpu);
    model_compare(&before, model, queue, NULL);
    check(queue->held <= queue->queued);
    check(!task || task_may_run_on(task, cpu));
    if (!task) {
        uint32_t ineligible = model->scheduler.ending ? 0 : queue->held;
        check(queue->queued == 0 || model_queued_for(model, queue, cpu) <= ineligible);
        check(queue->held == 0 || queue->alarm != 0 || queue_bars(queue, cpu));
        return NULL;
    }
    check(!queue->turn_end || model->policy->turn_over);
    model_taken(model, queue, model_task_of(task));
    return model_task_of(task);
}

static inline void model_stop(struct model *model, struct run_queue *queue, struct model_task *task,
                              enum stop_reason reason)
{
    struct model_snapshot before;
    if (!model_knows(model, task))
        return;
    model_remember(&before, model, queue, &task->task);
    policy_stop(model->policy, queue, &task->task, reason);
    model_compare(&before, model, queue, &task->task);
}

/* A blocked task moves away, so the policy removes its state from the queue. */
static inline void model_forget(struct model *model, struct run_queue *queue,
                                struct model_task *task)
{
    struct model_snapshot before;
    if (!model->policy->leave || !model_knows(model, task))
        return;
    model_remember(&before, model, queue, &task->task);
    model->policy->leave(queue, &task->task);
    model_compare(&before, model, queue, &task->task);
}

/* Reports a changed attribute of the task to the policy. */
static inline void model_notify_change(struct model *model, struct run_queue *queue,
                                       struct model_task *task)
{
    struct model_snapshot before;
    if (!model->policy->changed || !model_knows(model, task))
        return;
    model_remember(&before, model, queue, &task->task);
    model->policy->changed(queue, &task->task);
    model_compare(&before, model, queue, &task->task);
}

/* ---- switches of a CPU to another task ---- */

static inline void model_account(struct model *model, struct model_task *task)
{
    task->task.run_time += model->now - task->task.counted;
    task->task.counted = model->now;
}

static inline void model_leave(struct model *model, uint32_t cpu, enum stop_reason stop,
                               enum enqueue_reason reason)
{
    struct run_queue *queue = model_queue(model, cpu);
    struct model_task *task = model->cpus[cpu].current;
    check(task->place == MODEL_RUNNING && queue->running > 0);
    model_account(model, task);
    queue->running--;
    model->cpus[cpu].current = NULL;
    queue->current = NULL;
    task->place = MODEL_BLOCKED;
    model_stop(model, queue, task, stop);
    if (stop == STOP_RUNNABLE)
        model_enqueue(model, queue, task, reason, NULL);
}

static inline void model_log_pick(struct model *model, uint32_t cpu, int32_t pid)
{
    char text[32];
    model->picks++;
    model->pick_hash = (model->pick_hash ^ cpu ^ (uint64_t)pid << 8) * 0x100000001b3ull;
    const char *space = model->log_length > 0 ? " " : "";
    if (model->scheduler.cpus > 1)
        snprintf(text, sizeof(text), "%s%u:%d", space, cpu, pid);
    else
        snprintf(text, sizeof(text), "%s%d", space, pid);
    size_t length = strlen(text);
    if (model->log_length + length < sizeof(model->log)) {
        memcpy(model->log + model->log_length, text, length + 1);
        model->log_length += length;
    }
}

static inline void model_enter(struct model *model, uint32_t cpu, struct model_task *task)
{
    check(task->place == MODEL_BLOCKED);
    task->place = MODEL_RUNNING;
    task->task.counted = model->now;
    task->task.cpu = cpu;
    task->task.picked_since = model->now;
    task->task.selections++;
    model_queue(model, cpu)->running++;
    model->cpus[cpu].current = task;
    model_queue(model, cpu)->current = &task->task;
    model_log_pick(model, cpu, task->task.pid);
}

/* Moves the task that the policy returns from one CPU's queue to another; null: none. */
static inline struct model_task *model_move(struct model *model, uint32_t from, uint32_t to)
{
    struct model_snapshot before;
    struct run_queue *queue = model_queue(model, from);
    if (model_is_silent(model, queue, to))
        return NULL;
    model_remember(&before, model, queue, NULL);
    struct task *task = policy_steal(model->policy, queue, to);
    model_compare(&before, model, queue, NULL);
    if (!task)
        return NULL;
    check(task_may_run_on(task, to));
    model_taken(model, queue, model_task_of(task));
    model_record(model, TRACE_MIGRATE, task->pid, from, to);
    task->cpu = to;
    model_enqueue(model, model_queue(model, to), model_task_of(task), ENQUEUE_MOVED, NULL);
    return model_task_of(task);
}

/* Moves one task to the CPU's queue from the queue that the policy names; null: none. */
static inline struct model_task *model_pull(struct model *model, uint32_t cpu, bool idle)
{
    struct model_snapshot before;
    model_remember(&before, model, NULL, NULL);
    uint32_t from = policy_balance(model->policy, &model->scheduler, cpu, idle);
    model_compare(&before, model, NULL, NULL);
    return from == NO_CPU ? NULL : model_move(model, from, cpu);
}

/*
 * Asks the CPU to pick again. The end of a slice overrides other reasons, because it decides where
 * the task is queued.
 */
static inline void model_request(struct model *model, uint32_t cpu, enum preempt_reason why)
{
    struct model_cpu *target = &model->cpus[cpu];
    if (!(target->reschedule && target->why == PREEMPT_SLICE))
        target->why = why;
    target->reschedule = true;
}

static inline void model_record_switch(const struct model *model, int32_t previous, int32_t next,
                                       enum process_state left)
{
    const struct run_queue *queue =
        &model->queues[model->scheduler.queues == 1 ? 0 : model->acting_cpu];
    if (next && queue->remark)
        model_record(model, TRACE_DECISION, next, queue->queued, queue->remark);
    if (previous != next && previous && left == PROCESS_RUNNABLE &&
        model->cpus[model->acting_cpu].why)
        model_record(model, TRACE_PREEMPT, previous, model->cpus[model->acting_cpu].why, 0);
    if (previous != next)
        model_record(model, TRACE_SWITCH, next, (uint32_t)previous, left);
}

static inline enum process_state model_state_left(enum stop_reason stop)
{
    static const enum process_state states[] = {
        [STOP_RUNNABLE] = PROCESS_RUNNABLE,
        [STOP_BLOCKED] = PROCESS_BLOCKED,
        [STOP_ENDED] = PROCESS_ZOMBIE,
    };
    return states[stop];
}

static inline void model_make_runnable(struct model *model, struct model_task *task,
                                       enum enqueue_reason reason, const struct model_task *parent);
static inline uint32_t model_find_free(const struct model *model, const struct model_task *task);

/* The CPU picks again, on request or because its task leaves it. */
static inline void model_reschedule(struct model *model, uint32_t cpu, enum stop_reason stop,
                                    enum enqueue_reason reason)
{
    struct run_queue *queue = model_queue(model, cpu);
    struct model_task *left = model->cpus[cpu].current;
    int32_t previous = model_pid(left);
    uint32_t before = model->acting_cpu;
    bool moved = left && reason == ENQUEUE_EXPIRED && model->cpus[cpu].moves;
    model->acting_cpu = cpu;
    model_record(model, TRACE_SCHEDULER_ENTER, previous, 0, model->now);
    model->cpus[cpu].reschedule = false;
    if (model->cpus[cpu].current)
        model_leave(model, cpu, stop, reason);
    if (moved)
        model_dequeue(model, left);
    struct model_task *next = model_pick(model, queue, cpu);
    while (!next && model_pull(model, cpu, true))
        next = model_pick(model, queue, cpu);
    model_record_switch(model, previous, model_pid(next), model_state_left(stop));
    model->cpus[cpu].turn_end = next ? queue->turn_end : 0;
    if (next && next != left)
        model->cpus[cpu].entered = model->now;
    if (next)
        model_enter(model, cpu, next);
    model->cpus[cpu].why = 0;
    /* With one shared queue, another CPU may run the task that this CPU leaves. */
    bool leaves = left && left->task.cpus && left->place == MODEL_QUEUED;
    uint32_t idle = leaves ? model_find_free(model, left) : NO_CPU;
    if (idle != NO_CPU && model->scheduler.queues == 1)
        model_request(model, idle, PREEMPT_WAKEUP);
    model_record(model, TRACE_SCHEDULER_EXIT, model_pid(next), 0, model->now);
    if (moved)
        model_make_runnable(model, left, ENQUEUE_MOVED, NULL);
    model->acting_cpu = before;
}

static inline void model_check(struct model *model)
{
    uint32_t queued[MODEL_CPUS_MAX] = {0};
    uint32_t running[MODEL_CPUS_MAX] = {0};
    for (uint32_t i = 0; i < model->task_count; i++) {
        const struct model_task *task = model->tasks[i];
        if (task->place == MODEL_QUEUED)
            queued[task->queue]++;
        if (task->place != MODEL_ENDED && model_knows(model, task))
            check(model->policy->time_slice(&model->scheduler, &task->task) > 0);
        if (task->place == MODEL_RUNNING) {
            check(model->cpus[task->task.cpu].current == task);
            running[model->scheduler.queues == 1 ? 0 : task->task.cpu]++;
        }
    }
    for (uint32_t i = 0; i < model->scheduler.queues; i++)
        check(model->queues[i].queued == queued[i] && model->queues[i].running == running[i]);
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++)
        check(model->cpus[cpu].current ||
              model_queue(model, cpu)->queued == model_queue(model, cpu)->held ||
              model_queued_for(model, model_queue(model, cpu), cpu) <=
                  model_queue(model, cpu)->held);
}

/*
 * The first CPUs handle their requests to pick again, in order. A moved task may cause a request on
 * an earlier CPU.
 */
static inline void model_settle_first(struct model *model, uint32_t cpus)
{
    for (uint32_t cpu = 0; cpu < cpus; cpu++) {
        bool expired = model->cpus[cpu].why == PREEMPT_SLICE;
        if (!model->cpus[cpu].reschedule || (model->acts_first && model->acts_first(cpu)))
            continue;
        model_reschedule(model, cpu, STOP_RUNNABLE, expired ? ENQUEUE_EXPIRED : ENQUEUE_PREEMPTED);
        cpu = UINT32_MAX; /* continues with the first CPU */
    }
}

static inline void model_settle(struct model *model)
{
    model_settle_first(model, model->scheduler.cpus);
    model_check(model);
}

/* ---- which CPU is notified of a queued task ---- */

static inline bool model_would_preempt(struct model *model, struct run_queue *queue,
                                       const struct model_task *task,
                                       const struct model_task *running)
{
    struct model_snapshot before;
    model_remember(&before, model, queue, &running->task);
    bool preempts = policy_preempts(model->policy, queue, &task->task, &running->task);
    model_compare(&before, model, queue, &running->task);
    return preempts;
}

/* Returns the CPU whose task is preempted; NO_CPU: none. */
static inline uint32_t model_find_preempted(struct model *model, struct run_queue *queue,
                                            const struct model_task *task)
{
    bool shared = model->scheduler.queues == 1;
    uint32_t first = shared ? 0 : queue->cpu;
    uint32_t last = shared ? model->scheduler.cpus - 1 : queue->cpu;
    uint32_t best = NO_CPU;
    for (uint32_t cpu = first; cpu <= last; cpu++) {
        const struct model_task *running = model->cpus[cpu].current;
        if (!running || !model_knows(model, running) || !task_may_run_on(&task->task, cpu) ||
            !model_would_preempt(model, queue, task, running))
            continue;
        if (best == NO_CPU || model_would_preempt(model, queue, model->cpus[best].current, running))
            best = cpu;
    }
    return best;
}

/* Returns whether the CPU is idle and has no request. */
static inline bool model_is_free(const struct model *model, uint32_t cpu)
{
    return !model->cpus[cpu].current && !model->cpus[cpu].reschedule;
}

/* Returns the task's CPU if it is free, else the first free CPU; NO_CPU: none. */
static inline uint32_t model_find_free(const struct model *model, const struct model_task *task)
{
    if (model_is_free(model, task->task.cpu) && task_may_run_on(&task->task, task->task.cpu))
        return task->task.cpu;
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        if (model_is_free(model, cpu) && task_may_run_on(&task->task, cpu))
            return cpu;
    }
    return NO_CPU;
}

static inline void model_announce(struct model *model, struct run_queue *queue,
                                  const struct model_task *task)
{
    uint32_t chosen = NO_CPU;
    if (model->scheduler.queues == 1)
        chosen = model_find_free(model, task);
    else if (model_is_free(model, task->task.cpu))
        chosen = task->task.cpu;
    if (chosen == NO_CPU)
        chosen = model_find_preempted(model, queue, task);
    if (chosen == NO_CPU)
        chosen = model_find_free(model, task);
    if (chosen != NO_CPU)
        model_request(model, chosen, PREEMPT_WAKEUP);
}

/* Moves one task from the CPU's queue to the queue that the policy names. */
static inline void model_push(struct model *model, uint32_t cpu)
{
    struct model_snapshot before;
    model_remember(&before, model, NULL, NULL);
    uint32_t to = policy_push(model->policy, &model->scheduler, cpu);
    model_compare(&before, model, NULL, NULL);
    struct model_task *task = to == NO_CPU ? NULL : model_move(model, cpu, to);
    if (task)
        model_announce(model, model_queue(model, to), task);
}

/* The set of tasks that wait for the owner has changed. */
MECHANISM_FUNCTION void notify_owner(scheduler_t *scheduler, task_t *owner, uint32_t acting_cpu)
{
    struct model_snapshot before;
    struct model *model =
        (struct model *)(void *)((char *)scheduler - offsetof(struct model, scheduler));
    struct model_task *task = model_task_of(owner);
    struct run_queue *queue = model_queue(model, owner->cpu);
    (void)acting_cpu;
    if (!model->policy->waiters_changed || !model_knows(model, task))
        return;
    model_remember(&before, model, queue, owner);
    bool again = model->policy->waiters_changed(queue, owner);
    model_compare(&before, model, queue, owner);
    if (again && task->place == MODEL_RUNNING)
        model_request(model, owner->cpu, PREEMPT_POLICY);
    if (!again || task->place != MODEL_QUEUED)
        return;
    model_dequeue(model, task);
    model_enqueue(model, queue, task, ENQUEUE_MOVED, NULL);
    model_announce(model, queue, task);
}

/* Makes the task, which is or will be blocked, wait for `owner`; null: for no task. */
static inline void model_name_owner(struct model *model, struct model_task *task,
                                    struct model_task *owner)
{
    if (model->scheduler.follows_waits)
        wait_for_task(&model->scheduler, &task->task, owner ? &owner->task : NULL,
                      model->acting_cpu);
}

/*
 * Returns the task that continues, out of tasks that wait for the same thing, in order of arrival.
 */
static inline struct model_task *model_choose_waiter(struct model *model,
                                                     struct model_task **waiters, uint32_t count)
{
    struct run_queue *queue = model_queue(model, model->acting_cpu);
    struct model_task *chosen = waiters[0];
    for (uint32_t i = 0; model->scheduler.orders_waiters && i < count; i++) {
        struct model_snapshot before;
        struct task *waiter = &waiters[i]->task;
        void *state = waiter->state;
        if (!model_knows(model, waiters[i]) || !model_knows(model, chosen))
            continue;
        waiter->state = NULL; /* overtakes() must not read it */
        model_remember(&before, model, queue, waiter);
        if (model->policy->overtakes(queue, waiter, i > 0 ? &chosen->task : NULL))
            chosen = waiters[i];
        model_compare(&before, model, queue, waiter);
        waiter->state = state;
    }
    return chosen;
}

static inline void model_make_runnable(struct model *model, struct model_task *task,
                                       enum enqueue_reason reason, const struct model_task *parent)
{
    struct model_snapshot before;
    if (reason == ENQUEUE_WOKEN)
        model_name_owner(model, task, NULL);
    void *state = task->task.state;
    task->task.state = NULL; /* place() must not read it */
    model_remember(&before, model, NULL, &task->task);
    uint32_t cpu = policy_place(model->policy, &model->scheduler, &task->task, reason);
    model_compare(&before, model, NULL, &task->task);
    task->task.state = state;
    uint32_t from = task->task.cpu;
    task->task.cpu = cpu;
    if (reason == ENQUEUE_WOKEN && from != task->task.cpu)
        model_forget(model, model_queue(model, from), task);
    if (reason == ENQUEUE_WOKEN) {
        model_record(model, TRACE_WAKEUP, model_pid(task),
                     (uint32_t)model_pid(model->cpus[model->acting_cpu].current), task->task.cpu);
        if (from != task->task.cpu)
            model_record(model, TRACE_MIGRATE, model_pid(task), from, task->task.cpu);
    }
    struct run_queue *queue = model_queue(model, task->task.cpu);
    model_enqueue(model, queue, task, reason, parent);
    model_announce(model, queue, task);
}

/* ---- operations of tests ---- */

static inline void model_clear_log(struct model *model)
{
    model->log_length = 0;
    model->log[0] = '\0';
}

static inline void model_install(struct model *model, const struct policy_choice *choice)
{
    const uint32_t cpus = model->scheduler.cpus;
    model->policy = choice->policy;
    model->generation++;
    memset(model->scheduler.state, 0, POLICY_SCHEDULER_BYTES);
    policy_set_defaults(&model->scheduler, choice);
    policy_init_scheduler(model->policy, &model->scheduler);
    model->scheduler.queues =
        policy_wants_shared_queue(model->policy, &model->scheduler) ? 1 : cpus;
    for (uint32_t i = 0; i < cpus; i++) {
        struct run_queue *queue = &model->queues[i];
        void *state = queue->state;
        memset(state, 0, POLICY_QUEUE_BYTES);
        *queue = (struct run_queue){
            .scheduler = &model->scheduler, .now = model->now, .cpu = i, .state = state};
        policy_init_queue(model->policy, queue);
        model->cpus[i].turn_end = 0;
    }
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        model_queue(model, cpu)->running += model->cpus[cpu].current != NULL;
}

/*
 * Returns the index of a tunable, before any task is queued. If needed, the model changes to the
 * policy source with a tunable of this name; values that were set stay.
 */
static inline uint32_t model_find_tunable(struct model *model, const char *name)
{
    const struct policy *before = model->policy;
    const struct policy *next = before;
    int64_t values[POLICY_TUNABLES_MAX];
    while (next && tunable_find(next, name, strlen(name)) == NO_TUNABLE)
        next = policy_next_source(next);
    check(next);
    if (next != before) {
        memcpy(values, model->scheduler.tunable, sizeof(values));
        model_install(model, &(struct policy_choice){.policy = next});
        for (uint32_t i = 0; i < before->tunable_count; i++) {
            const char *old_name = before->tunables[i].name;
            uint32_t place = tunable_find(next, old_name, strlen(old_name));
            if (place != NO_TUNABLE)
                model->scheduler.tunable[place] = values[i];
        }
    }
    return tunable_find(next, name, strlen(name));
}

static inline struct policy_choice model_choice(const char *text)
{
    struct policy_choice choice;
    check(policy_choose(text, strlen(text), &choice) == POLICY_OK);
    check(!policy_flaw(choice.policy));
    return choice;
}

/* Makes a machine under "policy" or "policy:preset". */
static inline struct model *model_new(const char *text, uint32_t cpus, uint64_t seed)
{
    struct model *model = calloc(1, sizeof(*model));
    struct policy_choice choice = model_choice(text);
    check(model && cpus >= 1 && cpus <= MODEL_CPUS_MAX);
    model->scheduler.cpus = cpus;
    model->scheduler.tick_ns = MODEL_TICK_NS;
    model->scheduler.seed = seed;
    model->scheduler.state = malloc(POLICY_SCHEDULER_BYTES);
    for (uint32_t i = 0; i < cpus; i++) {
        model->queues[i].state = malloc(POLICY_QUEUE_BYTES);
        model->scheduler.queue[i] = &model->queues[i];
    }
    model_install(model, &choice);
    return model;
}

static inline void model_free(struct model *model)
{
    for (uint32_t i = 0; i < model->task_count; i++) {
        free(model->tasks[i]->task.state);
        free(model->tasks[i]);
    }
    for (uint32_t i = 0; i < model->scheduler.cpus; i++)
        free(model->queues[i].state);
    free(model->scheduler.state);
    free(model->tasks);
    free(model);
}

static inline uint32_t model_free_slot(const struct model *model)
{
    for (uint32_t slot = 0;; slot++) {
        bool taken = false;
        for (uint32_t i = 0; i < model->task_count && !taken; i++)
            taken = (model->tasks[i]->place != MODEL_ENDED || model->tasks[i]->unreaped) &&
                    model->tasks[i]->task.slot == slot;
        if (!taken)
            return slot;
    }
}

/* Makes a task that inherits the attributes of `parent` (null: the defaults). PIDs count from 1. */
static inline struct model_task *model_fork(struct model *model, const struct model_task *parent)
{
    struct model_task *task = calloc(1, sizeof(*task));
    uint32_t slot = model_free_slot(model);
    model->tasks = realloc(model->tasks, (model->task_count + 1) * sizeof(*model->tasks));
    check(task && model->tasks);
    model->tasks[model->task_count++] = task;
    task->task = (struct task){
        .pid = ++model->last_pid,
        .slot = slot,
        .cpu = parent ? parent->task.cpu : 0,
        .state = malloc(POLICY_TASK_BYTES),
        .cpus = model->set,
    };
    if (parent)
        INHERIT_ATTRIBUTES(&task->task, &parent->task);
    else
        SET_FIRST_ATTRIBUTES(&task->task);
    model_record(model, TRACE_FORK, model_pid(parent), (uint32_t)model_pid(task), 0);
    model_make_runnable(model, task, ENQUEUE_NEW, parent);
    model_settle(model);
    return task;
}

/* The CPU's task blocks until it is woken. */
static inline void model_block(struct model *model, uint32_t cpu)
{
    const struct model_task *task = model->cpus[cpu].current;
    model->acting_cpu = cpu;
    model_record(model, TRACE_BLOCK, model_pid(task), task->wake_at ? BLOCK_SLEEP : BLOCK_CHILD, 0);
    model_reschedule(model, cpu, STOP_BLOCKED, ENQUEUE_WOKEN);
    model_settle(model);
}

/* Blocks the CPU's task until `owner` acts. */
static inline void model_block_for(struct model *model, uint32_t cpu, struct model_task *owner)
{
    model_name_owner(model, model->cpus[cpu].current, owner);
    model_block(model, cpu);
}

/* The CPU's task sleeps until `ticks` more ticks have passed. */
static inline void model_sleep(struct model *model, uint32_t cpu, uint64_t ticks)
{
    struct model_task *task = model->cpus[cpu].current;
    task->wake_at = (model->now / MODEL_TICK_NS + ticks) * MODEL_TICK_NS;
    task->wake_order = model->timers++;
    task->wake_cpu = cpu;
    model_block(model, cpu);
}

static inline void model_wake_unsettled(struct model *model, struct model_task *task)
{
    check(task->place == MODEL_BLOCKED);
    task->wake_at = 0;
    model_make_runnable(model, task, ENQUEUE_WOKEN, NULL);
}

static inline void model_wake(struct model *model, struct model_task *task)
{
    model_wake_unsettled(model, task);
    model_settle(model);
}

static inline void model_yield(struct model *model, uint32_t cpu)
{
    model->acting_cpu = cpu;
    model_record(model, TRACE_YIELD, model_running(model, cpu), 0, 0);
    model_reschedule(model, cpu, STOP_RUNNABLE, ENQUEUE_YIELDED);
    model_settle(model);
}

/* Ends the task. The caller handles and records the effect on other tasks. */
static inline void model_end_unsettled(struct model *model, struct model_task *task)
{
    drop_waiters(&task->task);
    if (task->place == MODEL_RUNNING)
        model_reschedule(model, task->task.cpu, STOP_ENDED, ENQUEUE_WOKEN);
    else if (task->place == MODEL_QUEUED)
        model_dequeue(model, task);
    else if (task->place == MODEL_BLOCKED)
        model_forget(model, model_queue(model, task->task.cpu), task);
    task->place = MODEL_ENDED;
    if (model_knows(model, task))
        policy_exit_task(model->policy, &model->scheduler, &task->task);
    memset(task->task.state, 0xee, POLICY_TASK_BYTES);
    task->task.next = task->task.previous = NULL;
}

/* Ends the task in any state. */
static inline void model_end(struct model *model, struct model_task *task)
{
    model_record(model, TRACE_EXIT, model_pid(task), 0, 0);
    model_end_unsettled(model, task);
    model_settle(model);
}

static inline void model_set_attribute(struct model *model, struct model_task *task,
                                       enum model_attribute attribute, uint64_t value)
{
    bool queued = task->place == MODEL_QUEUED;
    struct run_queue *queue = model_queue(model, task->task.cpu);
    model_record(model, TRACE_ATTRIBUTE, model_pid(task), (uint32_t)attribute, value);
    if (queued)
        model_dequeue(model, task);
    STORE_ATTRIBUTE(&task->task, (uint32_t)attribute, value);
    model_notify_change(model, queue, task);
    if (queued) {
        model_enqueue(model, queue, task, ENQUEUE_MOVED, NULL);
        model_announce(model, queue, task);
    } else if (task->place == MODEL_RUNNING) {
        model_request(model, task->task.cpu, PREEMPT_POLICY);
    }
    notify_owners(&model->scheduler, task->task.waits_for, model->acting_cpu);
    model_settle(model);
}

/* Time passes without events. */
static inline void model_advance(struct model *model, uint64_t ns)
{
    model->now += ns;
}

/* Returns the CPU's task whose timer is due first, by time and then by start; null: none. */
static inline struct model_task *model_due(const struct model *model, uint32_t cpu)
{
    struct model_task *due = NULL;
    for (uint32_t i = 0; i < model->task_count; i++) {
        struct model_task *task = model->tasks[i];
        if (task->place != MODEL_BLOCKED || task->wake_cpu != cpu || task->wake_at == 0 ||
            task->wake_at > model->now)
            continue;
        if (!due || task->wake_at < due->wake_at ||
            (task->wake_at == due->wake_at && task->wake_order < due->wake_order))
            due = task;
    }
    return due;
}

/* Ends the task's slice if the verdict says this. */
static inline void model_end_by(struct model *model, uint32_t cpu, enum tick_verdict verdict)
{
    if (verdict != TICK_PREEMPT && verdict != TICK_MOVE)
        return;
    model->cpus[cpu].moves = verdict == TICK_MOVE && model->scheduler.queues > 1;
    model_request(model, cpu, PREEMPT_SLICE);
}

/* Applies a hook's verdict on the CPU's task. */
static inline void model_obey(struct model *model, uint32_t cpu, enum tick_verdict verdict)
{
    struct model_task *task = model->cpus[cpu].current;
    model_end_by(model, cpu, verdict);
    if (verdict == TICK_KILL) {
        model_record(model, TRACE_EXIT, model_pid(task), UINT32_MAX, 0);
        model_end_unsettled(model, task);
    }
}

/* The queue's alarm is due: tasks that may run again are announced. */
static inline void model_ring(struct model *model, struct run_queue *queue)
{
    struct model_snapshot before;
    for (uint32_t calls = 0; queue->alarm && queue->alarm <= model->now; calls++) {
        check(calls <= queue->queued);
        queue->alarm = 0;
        model_remember(&before, model, queue, NULL);
        struct task *task = model->policy->alarm(queue);
        model_compare(&before, model, queue, NULL);
        if (!task)
            continue;
        check(model_task_of(task)->place == MODEL_QUEUED &&
              model_task_of(task)->queue == queue->cpu);
        model_announce(model, queue, model_task_of(task));
    }
}

/* The end of the slice, as set by the policy, is reached. */
static inline void model_end_turn(struct model *model, uint32_t cpu)
{
    struct model_snapshot before;
    struct run_queue *queue = model_queue(model, cpu);
    struct model_task *task = model->cpus[cpu].current;
    enum tick_verdict verdict = TICK_PREEMPT;
    model_account(model, task);
    queue->turn_end = 0;
    model_remember(&before, model, queue, &task->task);
    if (!model_knows(model, task))
        verdict = TICK_CONTINUE;
    else if (model->policy->turn_over)
        verdict = model->policy->turn_over(queue, &task->task);
    model_compare(&before, model, queue, &task->task);
    model->cpus[cpu].turn_end = queue->turn_end;
    model_obey(model, cpu, verdict);
}

/* Makes the policy's timed calls for one CPU, now. */
static inline void model_policy_times(struct model *model, uint32_t cpu)
{
    struct run_queue *queue = &model->queues[cpu];
    model->acting_cpu = cpu;
    queue->now = model->now;
    if (cpu < model->scheduler.queues)
        model_ring(model, queue);
    if (model->cpus[cpu].turn_end && model->cpus[cpu].turn_end <= model->now)
        model_end_turn(model, cpu);
}

/* Returns the earliest time of a timed call of the policy; UINT64_MAX: never. */
static inline uint64_t model_next_policy_time(const struct model *model)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        uint64_t turn_end = model->cpus[cpu].turn_end;
        uint64_t alarm = cpu < model->scheduler.queues ? model->queues[cpu].alarm : 0;
        next = turn_end && turn_end < next ? turn_end : next;
        next = alarm && alarm < next ? alarm : next;
    }
    return next;
}

/* Time passes until `until`, with the timed calls of the policy. */
static inline void model_run_until(struct model *model, uint64_t until)
{
    uint64_t next;
    while ((next = model_next_policy_time(model)) < until) {
        model->now = next > model->now ? next : model->now;
        for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++)
            model_policy_times(model, cpu);
        model_settle(model);
    }
    model->now = until;
}

/* One CPU's tick, now: timers, the policy's tick, balancing. */
static inline void model_tick_unsettled(struct model *model, uint32_t cpu)
{
    struct model_snapshot before;
    struct model_task *due;
    model->acting_cpu = cpu;
    while ((due = model_due(model, cpu)))
        model_wake_unsettled(model, due);
    model_policy_times(model, cpu);

    struct model_task *task = model->cpus[cpu].current;
    enum tick_verdict verdict = TICK_CONTINUE;
    bool is_new = model->policy->turn_over && model->cpus[cpu].entered == model->now;
    if (task && model_knows(model, task) && !is_new) {
        struct run_queue *queue = model_queue(model, cpu);
        model_account(model, task);
        queue->turn_end = 0;
        model_remember(&before, model, queue, &task->task);
        verdict = model->policy->tick(queue, &task->task);
        model_compare(&before, model, queue, &task->task);
        if (queue->turn_end)
            model->cpus[cpu].turn_end = queue->turn_end;
    }
    model_end_by(model, cpu, verdict);
    if (task)
        model_push(model, cpu);
    struct model_task *pulled = task ? model_pull(model, cpu, false) : NULL;
    if (pulled)
        model_announce(model, model_queue(model, cpu), pulled);
    if (!task)
        model_request(model, cpu, PREEMPT_WAKEUP);
    if (verdict == TICK_KILL) {
        model_record(model, TRACE_EXIT, model_pid(task), UINT32_MAX, 0);
        model_end_unsettled(model, task);
    }
}

/* One CPU's tick, now, and the switches that it requests. */
static inline void model_tick_cpu(struct model *model, uint32_t cpu)
{
    model_tick_unsettled(model, cpu);
    model_settle(model);
}

/* Each CPU's tick, now, in order. A CPU does nothing else before its tick. */
static inline void model_tick_all(struct model *model)
{
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        model_tick_unsettled(model, cpu);
        model_settle_first(model, cpu + 1);
    }
    model_check(model);
}

/* Runs for this long, including ticks. */
static inline void model_run_for(struct model *model, uint64_t ns)
{
    uint64_t end = model->now + ns;
    while (model->now < end) {
        uint64_t tick = (model->now / MODEL_TICK_NS + 1) * MODEL_TICK_NS;
        model_run_until(model, tick < end ? tick : end);
        if (model->now % MODEL_TICK_NS == 0)
            model_tick_all(model);
    }
}

/* One tick period passes, with the timed calls of the policy. */
static inline void model_tick(struct model *model)
{
    model_run_until(model, model->now + MODEL_TICK_NS);
    model_tick_all(model);
}

static inline void model_ticks(struct model *model, uint32_t ticks)
{
    for (uint32_t i = 0; i < ticks; i++)
        model_tick(model);
}

/* Switches the policy while tasks run. */
static inline void model_switch(struct model *model, const char *text)
{
    struct policy_choice choice = model_choice(text);
    struct model_task **drained = calloc(model->task_count + 1, sizeof(*drained));
    uint32_t count = 0;
    model->scheduler.ending = true;
    for (uint32_t i = 0; i < model->scheduler.cpus; i++) {
        struct model_task *task;
        while ((task = model_pick(model, model_queue(model, i), i)))
            drained[count++] = task;
    }
    model->scheduler.ending = false;
    model_install(model, &choice);
    for (uint32_t i = 0; i < model->task_count; i++)
        memset(model->tasks[i]->task.state, 0xee, POLICY_TASK_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        struct run_queue *queue = model_queue(model, drained[i]->task.cpu);
        model_enqueue(model, queue, drained[i], ENQUEUE_ADOPTED, NULL);
    }
    free(drained);
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++)
        model_request(model, cpu, PREEMPT_POLICY);
    model_settle(model);
}

/* Requires that the picks since the last call equal `expected`, and clears them. */
#define check_picks(model, expected)                                                               \
    do {                                                                                           \
        if (strcmp((model)->log, expected) != 0)                                                   \
            fprintf(stderr, "picked:   %s\nexpected: %s\n", (model)->log, expected);               \
        check(strcmp((model)->log, expected) == 0);                                                \
        model_clear_log(model);                                                                    \
    } while (0)

#endif
