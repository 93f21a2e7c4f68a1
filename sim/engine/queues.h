/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_QUEUES_H
#define SIM_ENGINE_QUEUES_H

/* Run queues, as in kernel/scheduler/run_queue.c. */

#include <stddef.h>

#include "sim/engine/base.h"

static inline struct run_queue *queue_of(struct simulator *simulator, uint32_t cpu)
{
    struct run_queue *queue = &simulator->queues[simulator->scheduler.queues == 1 ? 0 : cpu];
    queue->now = policy_now(simulator);
    return queue;
}

static inline struct process *process_of(task_t *task)
{
    return (struct process *)task; /* `task` is the first member */
}

/* ---- required by policies/support/queueing.h ---- */

MECHANISM_FUNCTION bool task_is_known(const task_t *task)
{
    return ((const struct process *)task)->known;
}

MECHANISM_FUNCTION void task_set_known(task_t *task)
{
    process_of(task)->known = true;
}

MECHANISM_FUNCTION bool task_is_queued(const task_t *task)
{
    return ((const struct process *)task)->place == PLACE_QUEUED;
}

MECHANISM_FUNCTION void task_set_queued(task_t *task, bool queued)
{
    process_of(task)->place = queued ? PLACE_QUEUED : PLACE_BLOCKED;
}

static inline struct simulator *simulator_of(const scheduler_t *scheduler)
{
    return (struct simulator *)(void *)((char *)scheduler - offsetof(struct simulator, scheduler));
}

MECHANISM_FUNCTION uint32_t task_state_bytes(const scheduler_t *scheduler)
{
    return simulator_of(scheduler)->state_bytes;
}

static __attribute__((cold, noinline)) void fail_by_flaw(struct simulator *simulator,
                                                         const task_t *task, enum queue_flaw flaw)
{
    static const char *const texts[] = {
        [FLAW_LOST] = FLAW_LOST_TEXT,       [FLAW_HELD] = FLAW_HELD_TEXT,
        [FLAW_GIVEN] = FLAW_GIVEN_TEXT,     [FLAW_COUNT] = FLAW_COUNT_TEXT,
        [FLAW_VERDICT] = FLAW_VERDICT_TEXT, [FLAW_CPU] = FLAW_CPU_TEXT,
        [FLAW_PLACE] = FLAW_PLACE_TEXT,
    };
    if (task)
        fail(simulator, "policy %s %s: pid %d", policy->name, texts[flaw], task->pid);
    else
        fail(simulator, "policy %s %s", policy->name, texts[flaw]);
}

/* Returns the queue's task that has been queued for longest. Returns null if the policy holds tasks
 * back, because the simulator does not know which. */
static __attribute__((cold, noinline)) const task_t *lost_task(const struct simulator *simulator,
                                                               const run_queue_t *queue)
{
    const task_t *lost = NULL;
    if (queue->held && !simulator->scheduler.ending)
        return NULL;
    for (uint32_t slot = 0; slot < simulator->most_processes; slot++) {
        const struct process *process = process_at(simulator, slot);
        const task_t *task = &process->task;
        if (process->place != PLACE_QUEUED || process->urgent ||
            (simulator->scheduler.queues > 1 && task->cpu != queue->cpu))
            continue;
        if (!lost || task->queued_since < lost->queued_since)
            lost = task;
    }
    return lost;
}

static __attribute__((cold, noinline)) void fail_by_loss(const run_queue_t *queue)
{
    struct simulator *simulator = simulator_of(queue->scheduler);
    const task_t *task = lost_task(simulator, queue);
    if (!task)
        fail_by_flaw(simulator, NULL, FLAW_LOST);
    else
        fail(simulator, "policy %s %s: pid %d, queued since %.3f ms", policy->name, FLAW_LOST_TEXT,
             task->pid, (double)(task->queued_since - simulator->policy_clock) / 1e6);
}

MECHANISM_FUNCTION void note_flaw(const run_queue_t *queue, const task_t *task,
                                  enum queue_flaw flaw)
{
    if (flaw == FLAW_LOST)
        fail_by_loss(queue);
    else
        fail_by_flaw(simulator_of(queue->scheduler), task, flaw);
}

static __attribute__((cold, noinline)) void fail_by_cpu(const scheduler_t *scheduler,
                                                        enum queue_flaw flaw)
{
    fail_by_flaw(simulator_of(scheduler), NULL, flaw);
}

/* ---- times that the policy set ---- */

/* Converts a time that the policy set to simulator time; 0 is none. */
static inline uint64_t requested_time(const struct simulator *simulator, uint64_t time)
{
    if (time == 0 || time == NEVER)
        return NEVER;
    return time > simulator->policy_clock ? time - simulator->policy_clock : 0;
}

static inline void note_turn_end(const struct simulator *simulator, struct cpu *cpu,
                                 uint64_t turn_end)
{
    cpu->turn_end = requested_time(simulator, turn_end);
}

/* Called after a hook of the queue. If the hook has set another alarm, the queue's CPU plans
 * again. */
static inline void note_alarm(struct simulator *simulator, const struct run_queue *queue)
{
    struct cpu *cpu = &simulator->cpus[queue->cpu];
    uint64_t alarm = requested_time(simulator, queue->alarm);
    if (!policy->alarm || alarm == cpu->alarm)
        return;
    cpu->alarm = alarm;
    cpu_set_add(&simulator->called, cpu->id);
}

/* Rarely called, like the next function. */
static __attribute__((cold, noinline)) void
record_annotation(struct simulator *simulator, uint32_t acting_cpu, struct run_queue *queue)
{
    struct said annotation;
    if (!take_annotation(queue, &annotation))
        return;
    const char *text = (const char *)annotation.text;
    size_t length = strnlen(text, SAID_BYTES);
    record_number(simulator, acting_cpu, TRACE_SAID, annotation.pid, (uint32_t)annotation.other,
                  (uint64_t)annotation.value);
    for (size_t at = 0; at == 0 || at < length; at += TEXT_BYTES_PER_RECORD) {
        uint64_t second;
        uint32_t first;
        memcpy(&second, text + at, 8);
        memcpy(&first, text + at + 8, 4);
        record_number(simulator, acting_cpu, TRACE_TEXT, 0, first, second);
    }
}

/* Handles the results of the queue's hooks, on the CPU where they were called. */
static inline void hooks_called(struct simulator *simulator, uint32_t acting_cpu,
                                struct run_queue *queue)
{
    note_alarm(simulator, queue);
    if (__builtin_expect(queue->said.told, 0))
        record_annotation(simulator, acting_cpu, queue);
}

/* ---- queueing, taking out and moving ---- */

/* Rarely called, so kept out of the code that runs at every decision. */
static __attribute__((cold, noinline)) void record_queued(struct simulator *simulator,
                                                          uint32_t acting_cpu,
                                                          const struct run_queue *queue,
                                                          const struct process *process)
{
    record(simulator, acting_cpu, TRACE_QUEUED, process, queue->cpu, process->task.level);
}

/* Introduces a process to the policy. A forked process inherits from its parent, unless the policy
 * does not know the parent. A policy does not know init, because init is urgent in the kernel. */
static __attribute__((noinline)) enum enqueue_reason introduce(struct simulator *simulator,
                                                               struct process *process,
                                                               enum enqueue_reason reason,
                                                               const struct process *parent)
{
    bool inherits = parent && parent->task.slot != FIRST_SLOT;
    return task_introduce(policy, &simulator->scheduler, &process->task, reason,
                          inherits ? &parent->task : NULL);
}

static __attribute__((cold, noinline)) void add_urgent(struct simulator *simulator,
                                                       struct process *process)
{
    uint32_t *end = &simulator->urgent;
    while (*end != NOBODY)
        end = &process_at(simulator, *end)->link;
    *end = process->task.slot;
    process->link = NOBODY;
    process->place = PLACE_QUEUED;
}

/* Takes out the urgent process with this slot or, without a slot, the first urgent process
 * of the queue that may run on the CPU. Returns null if there is none. */
static __attribute__((cold, noinline)) struct process *
take_urgent(struct simulator *simulator, const struct run_queue *queue, uint32_t cpu, uint32_t slot)
{
    uint32_t *link = &simulator->urgent;
    for (; *link != NOBODY; link = &process_at(simulator, *link)->link) {
        struct process *process = process_at(simulator, *link);
        bool may = simulator->scheduler.ending || task_may_run_on(&process->task, cpu);
        if (slot != NOBODY ? *link != slot
                           : !may || queue_of(simulator, process->task.cpu) != queue)
            continue;
        *link = process->link;
        process->link = NOBODY;
        process->place = PLACE_BLOCKED;
        return process;
    }
    return NULL;
}

static inline void queue_add(struct simulator *simulator, uint32_t acting_cpu,
                             struct run_queue *queue, struct process *process,
                             enum enqueue_reason reason, const struct process *parent)
{
    if (process->urgent) {
        add_urgent(simulator, process);
    } else {
        if (!process->known)
            reason = introduce(simulator, process, reason, parent);
        run_queue_add(policy, queue, &process->task, reason);
        hooks_called(simulator, acting_cpu, queue);
    }
    simulator->queued++;
    if (simulator->traces_queues)
        record_queued(simulator, acting_cpu, queue, process);
}

static inline void queue_remove(struct simulator *simulator, uint32_t acting_cpu,
                                struct run_queue *queue, struct process *process)
{
    if (process->urgent)
        take_urgent(simulator, queue, NO_CPU, process->task.slot);
    else
        run_queue_remove(policy, queue, &process->task);
    hooks_called(simulator, acting_cpu, queue);
    simulator->queued--;
}

/* Takes out the next process for the CPU. Returns null if there is none. */
static inline struct process *queue_pick(struct simulator *simulator, struct run_queue *queue,
                                         uint32_t cpu)
{
    struct process *urgent = NULL;
    if (__builtin_expect(simulator->urgent != NOBODY, 0))
        urgent = take_urgent(simulator, queue, cpu, NOBODY);
    if (urgent) {
        run_queue_pick_none(queue);
        simulator->queued--;
        return urgent;
    }
    task_t *task = run_queue_pick_for(policy, queue, cpu);
    hooks_called(simulator, cpu, queue);
    simulator->queued -= task != NULL;
    return process_of(task);
}

static void change_cpu(struct simulator *simulator, uint32_t acting_cpu, struct process *process,
                       uint32_t to)
{
    record(simulator, acting_cpu, TRACE_MIGRATE, process, process->task.cpu, to);
    process->task.cpu = to;
    process->left += simulator->costs.migration;
    simulator->counts.migrations++;
}

/* Moves a process, which the policy chooses, from one CPU's queue to another's. Returns the
 * process, or null if there is none. */
static struct process *move(struct simulator *simulator, uint32_t acting_cpu, uint32_t from,
                            uint32_t to)
{
    struct run_queue *queue = queue_of(simulator, from);
    struct process *process = process_of(run_queue_steal_for(policy, queue, to));
    hooks_called(simulator, acting_cpu, queue);
    if (!process)
        return NULL;
    simulator->queued--;
    change_cpu(simulator, acting_cpu, process, to);
    queue_add(simulator, acting_cpu, queue_of(simulator, to), process, ENQUEUE_MOVED, NULL);
    return process;
}

/* Takes a process for an idle CPU from any queue. Called if the queue that the policy named had no
 * process that may run on this CPU. */
static __attribute__((cold, noinline)) struct process *pull_from_any(struct simulator *simulator,
                                                                     uint32_t cpu)
{
    struct process *process = NULL;
    for (uint32_t i = 0; i < simulator->scheduler.queues && !process; i++) {
        if (i != cpu && simulator->queues[i].queued > 0)
            process = move(simulator, cpu, i, cpu);
    }
    return process;
}

static struct process *queue_pull(struct simulator *simulator, uint32_t cpu, bool idle)
{
    uint32_t from = policy_balance(policy, &simulator->scheduler, cpu, idle);
    if (from == NO_CPU)
        return NULL;
    struct process *process = move(simulator, cpu, from, cpu);
    if (!process && idle && simulator->affinity_used)
        process = pull_from_any(simulator, cpu);
    return process;
}

static bool queue_has_work(struct simulator *simulator, uint32_t cpu)
{
    return simulator->queued > 0 &&
           (run_queue_waits(queue_of(simulator, cpu)) ||
            policy_balance(policy, &simulator->scheduler, cpu, true) != NO_CPU);
}

#endif
