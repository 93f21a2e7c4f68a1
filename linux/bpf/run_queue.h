/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_RUN_QUEUE_H
#define LINUX_BPF_RUN_QUEUE_H

/*
 * The run queues, and which CPU is notified of a queued thread. All functions here except
 * place_thread() need the lock of `queue`, and call no kernel function: a BPF program may not while
 * it holds a lock. If a decision requires an action, it is returned as an errand, which the caller
 * runs once it holds no lock.
 */

#include "policies/support/preemption.h"

#include "slots.h"

/* An error under a lock (enum queue_flaw), to be reported after it. */
uint32_t flaw;

/* What to do for the CPU once no lock is held. */
enum errand_kind {
    ERRAND_NONE,
    ERRAND_WAKE,    /* it is idle, and there is something to run */
    ERRAND_PREEMPT, /* its thread is preempted */
    ERRAND_CHANGE,  /* its thread was changed, and must be judged again */
};

#define ERRAND(kind, cpu)   ((uint64_t)(kind) << 32 | (cpu))
#define ERRAND_KIND(errand) ((uint32_t)((errand) >> 32))
#define ERRAND_CPU(errand)  ((uint32_t)(errand))

static __always_inline uint32_t queue_number(uint32_t cpu)
{
    return host->scheduler.queues == 1 ? 0 : cpu % POLICY_CPUS_MAX;
}

static __always_inline queue_t *queue_of(uint32_t cpu)
{
    return &host->queues[queue_number(cpu)];
}

static __always_inline slot_t *slot_of_task(task_t *task)
{
    return (slot_t *)task; /* its first member */
}

/* ---- required by policies/support/queueing.h ---- */

MECHANISM_FUNCTION bool task_is_known(const task_t *task)
{
    return ((const slot_t *)task)->known;
}

MECHANISM_FUNCTION void task_set_known(task_t *task)
{
    slot_of_task(task)->known = 1;
}

MECHANISM_FUNCTION bool task_is_queued(const task_t *task)
{
    return ((const slot_t *)task)->place == PLACE_QUEUED;
}

MECHANISM_FUNCTION void task_set_queued(task_t *task, bool queued)
{
    slot_of_task(task)->place = queued ? PLACE_QUEUED : PLACE_NOWHERE;
}

MECHANISM_FUNCTION uint32_t task_state_bytes(const scheduler_t *scheduler)
{
    return POLICY_TASK_BYTES;
}

MECHANISM_FUNCTION void note_flaw(const run_queue_t *queue, const task_t *task,
                                  enum queue_flaw selected)
{
    flaw = selected;
}

/* ---- tasks in queues and on CPUs ---- */

/* Sets the queue's time after it was locked, for an event at `now`. The clock is read before the
 * lock is taken, but for the policy no time goes back. */
static __always_inline void begin_hooks(queue_t *queue, uint64_t now)
{
    if (now > queue->view.now)
        queue->view.now = now;
}

/* Adds the time until `now` to run_time, if Linux has the thread on a CPU. */
static __always_inline void account(slot_t *slot, uint64_t now)
{
    if (slot->task.counted && now > slot->task.counted)
        task_count_run_time(&slot->task, now);
}

static __always_inline bool alarm_is_due(const queue_t *queue)
{
    return queue->view.alarm && queue->view.alarm <= queue->view.now;
}

/* `parent` is null if the thread was not forked, but adopted. Returns the reason for queueing
 * it. */
static __noinline uint32_t introduce(slot_t *slot, uint32_t reason, const slot_t *parent)
{
    return task_introduce(&POLICY, &host->scheduler, &slot->task, (enum enqueue_reason)reason,
                          parent ? &parent->task : NULL);
}

/* A thread that the policy does not know yet is adopted; a forked one is known already. */
static __noinline void queue_add(queue_t *queue, slot_t *slot, uint32_t reason)
{
    if (!slot->known)
        reason = introduce(slot, ENQUEUE_ADOPTED, NULL);
    slot->turn = 0;
    slot->stopped = 0;
    run_queue_add(&POLICY, &queue->view, &slot->task, (enum enqueue_reason)reason);
}

static __noinline void queue_remove(queue_t *queue, slot_t *slot)
{
    run_queue_remove(&POLICY, &queue->view, &slot->task);
}

/* Returns null if no task is queued that may run. */
static __noinline slot_t *queue_pick(queue_t *queue, uint32_t cpu)
{
    return slot_of_task(run_queue_pick(&POLICY, &queue->view, cpu));
}

/* The thread gets the CPU, until `turn_end`. */
static __always_inline void enter(queue_t *queue, slot_t *slot, uint32_t cpu, uint64_t turn_end)
{
    slot->turn_end = turn_end;
    slot->place = PLACE_CPU;
    slot->turn = 0;
    slot->task.cpu = cpu;
    run_queue_enter(&queue->view, &slot->task);
    slot->task.counted = 0; /* until host_running() */
    if (!host->occupant[cpu % POLICY_CPUS_MAX])
        host->occupant[cpu % POLICY_CPUS_MAX] = slot;
}

/* The thread gives up its CPU. */
static __noinline void leave(queue_t *queue, slot_t *slot, uint32_t stop)
{
    uint32_t cpu = slot->task.cpu % POLICY_CPUS_MAX;
    account(slot, queue->view.now);
    slot->task.counted = 0;
    slot->place = PLACE_NOWHERE;
    slot->stopped = stop;
    if (host->occupant[cpu] == slot)
        host->occupant[cpu] = NULL;
    run_queue_leave(&POLICY, &queue->view, &slot->task, (enum stop_reason)stop);
}

/* ---- required by policies/support/preemption.h ---- */

MECHANISM_FUNCTION const task_t *task_on_cpu(const scheduler_t *scheduler, uint32_t cpu)
{
    return (const task_t *)host->occupant[cpu % POLICY_CPUS_MAX];
}

/* Urgent threads are not the policy's: Linux runs them in other scheduling classes. */
MECHANISM_FUNCTION bool task_is_urgent(const task_t *task)
{
    return false;
}

/* A notified CPU counts as idle until it has picked: a second notification is harmless. */
MECHANISM_FUNCTION bool claim_idle_cpu(const scheduler_t *scheduler, uint32_t cpu)
{
    return !host->occupant[cpu % POLICY_CPUS_MAX];
}

/* Returns the lowest idle CPU that `slot` may use, or NO_CPU. */
static __noinline uint32_t find_idle(const slot_t *slot)
{
    for (uint32_t cpu = unseen(0); cpu < host->scheduler.cpus && can_loop; cpu++) {
        if (!host->occupant[cpu % POLICY_CPUS_MAX] && task_may_run_on(&slot->task, cpu))
            return cpu;
    }
    return NO_CPU;
}

MECHANISM_FUNCTION uint32_t claim_lowest_idle_cpu(const scheduler_t *scheduler, const task_t *task)
{
    return unseen(find_idle((const slot_t *)task));
}

/* Returns the errand for a thread that was queued. An idle CPU of another queue, which is not
 * locked here, may have received a thread since: so it is only woken. */
static __noinline uint64_t announce(queue_t *queue, slot_t *slot)
{
    uint32_t cpu = unseen(find_cpu_to_call(&POLICY, &queue->view, &slot->task));
    if (cpu == NO_CPU)
        return ERRAND(ERRAND_NONE, 0);
    bool of_queue = queue_number(cpu) == queue_number(slot->task.cpu);
    slot_t *running = of_queue ? host->occupant[cpu % POLICY_CPUS_MAX] : NULL;
    if (!running)
        return ERRAND(ERRAND_WAKE, cpu);
    if (!running->turn)
        running->turn = ENQUEUE_PREEMPTED + 1;
    return ERRAND(ERRAND_PREEMPT, cpu);
}

/*
 * Moves a queued thread between two queues; both are locked. Returns null if the policy has no
 * thread to move, or chose a thread that Linux does not allow there.
 */
static __noinline slot_t *move(queue_t *from, queue_t *to, uint32_t cpu)
{
    slot_t *slot = slot_of_task(run_queue_steal(&POLICY, &from->view, cpu));
    if (!slot)
        return NULL;
    if (!task_may_run_on(&slot->task, cpu)) {
        queue_add(from, slot, ENQUEUE_MOVED);
        return NULL;
    }
    slot->task.cpu = cpu;
    queue_add(to, slot, ENQUEUE_MOVED);
    return slot;
}

/* Returns the CPU for a thread that is forked or woken. No lock is held. */

static __noinline uint32_t place_thread(const slot_t *slot, uint32_t reason, uint32_t fallback)
{
    if (host->scheduler.queues > 1)
        return policy_place(&POLICY, &host->scheduler, &slot->task, (enum enqueue_reason)reason);
    return allowed_cpu(&host->scheduler, &slot->task, fallback);
}

#endif
