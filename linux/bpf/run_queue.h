/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_RUN_QUEUE_H
#define LINUX_BPF_RUN_QUEUE_H

/*
 * The policy's hooks, and what the host promises about them. All functions here
 * but place_thread() are called with the lock of `queue` held, and call nothing
 * of the kernel's: a BPF program may not while it holds a lock. What is to be
 * done about a decision is returned, as an errand.
 */

#include "policies/support/hooks.h"

#include "slots.h"

/* What went wrong under a lock, to be reported after it. */
enum flaw {
    FLAW_NONE,
    FLAW_LOST,  /* tasks were queued, and pick() gave none */
    FLAW_GIVEN, /* pick() or steal() gave a task that was not queued */
    FLAW_COUNT, /* the host's own counts disagree */
};

uint32_t flaw;

/* What the CPU that is named is to be told, when no lock is held any more. */
enum errand_kind {
    ERRAND_NONE,
    ERRAND_WAKE,    /* it idles, and there is something to run */
    ERRAND_PREEMPT, /* its thread gives way to another */
    ERRAND_CHANGE,  /* its thread was changed, and is to be judged anew */
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

/* Up to now, if it is on a CPU. */
static __always_inline void account(slot_t *slot, uint64_t now)
{
    if (!slot->accounted)
        return;
    if (now > slot->accounted)
        slot->task.run_time += now - slot->accounted;
    slot->accounted = now;
}

/* Makes it known to the policy. A forked one inherits from `parent`; null: it is adopted. */
static __noinline void introduce(slot_t *slot, const slot_t *parent)
{
    uint32_t words = unseen(POLICY_TASK_BYTES / 8);
    for (uint32_t i = unseen(0); i < words && can_loop; i++)
        slot->policy_state[i] = 0;
    slot->task.level = 0;
    slot->task.next = NULL;
    slot->task.previous = NULL;
    slot->task.state = slot->policy_state;
    policy_init_task(&POLICY, &host->scheduler, &slot->task, parent ? &parent->task : NULL);
    slot->known = 1;
}

static __noinline void queue_add(queue_t *queue, slot_t *slot, uint32_t reason)
{
    if (!slot->known) {
        introduce(slot, NULL);
        reason = ENQUEUE_ADOPTED;
    }
    slot->place = PLACE_QUEUED;
    slot->turn = 0;
    slot->task.queued_since = queue->view.now;
    POLICY.enqueue(&queue->view, &slot->task, (enum enqueue_reason)reason);
    queue->view.queued++;
}

/* Out of the policy's hands. */
static __always_inline void taken_out(queue_t *queue, slot_t *slot)
{
    if (slot->place != PLACE_QUEUED || queue->view.queued == 0) {
        flaw = FLAW_GIVEN;
        return;
    }
    slot->place = PLACE_NOWHERE;
    queue->view.queued--;
}

static __noinline void queue_remove(queue_t *queue, slot_t *slot)
{
    POLICY.dequeue(&queue->view, &slot->task);
    taken_out(queue, slot);
}

/* Null: nobody is queued. */
static __noinline slot_t *queue_pick(queue_t *queue, uint32_t cpu)
{
    queue->view.remark = 0;
    task_t *task = POLICY.pick(&queue->view, cpu);
    if (!task) {
        if (queue->view.queued > 0)
            flaw = FLAW_LOST;
        return NULL;
    }
    slot_t *slot = slot_of_task(task);
    taken_out(queue, slot);
    return slot;
}

/* It gets the CPU. */
static __always_inline void enter(queue_t *queue, slot_t *slot, uint32_t cpu)
{
    slot->place = PLACE_CPU;
    slot->turn = 0;
    slot->task.picked_since = queue->view.now;
    slot->task.selections++;
    slot->task.cpu = cpu;
    queue->view.running++;
    if (!host->occupant[cpu % POLICY_CPUS_MAX])
        host->occupant[cpu % POLICY_CPUS_MAX] = slot;
}

/* It gives up the CPU that it had. */
static __noinline void leave(queue_t *queue, slot_t *slot, uint32_t stop)
{
    uint32_t cpu = slot->task.cpu % POLICY_CPUS_MAX;
    account(slot, queue->view.now);
    slot->accounted = 0;
    slot->place = PLACE_NOWHERE;
    if (host->occupant[cpu] == slot)
        host->occupant[cpu] = NULL;
    if (queue->view.running == 0)
        flaw = FLAW_COUNT;
    else
        queue->view.running--;
    if (slot->known)
        policy_stop(&POLICY, &queue->view, &slot->task, (enum stop_reason)stop);
}

/* Would `slot`, just queued, take the CPU of who has it? */
static __noinline bool preempts(queue_t *queue, const slot_t *slot, uint32_t cpu)
{
    const slot_t *running = host->occupant[cpu % POLICY_CPUS_MAX];
    return running && running->known && may_run_on(slot, cpu) &&
           policy_preempts(&POLICY, &queue->view, &slot->task, &running->task);
}

/* The CPU that must give way to `slot`; NO_CPU: none. Of several that a shared queue serves, one
 * whose thread the others would preempt, too. */
static __noinline uint32_t find_preempted(queue_t *queue, const slot_t *slot)
{
    uint32_t found = NO_CPU;
    if (!POLICY.preempts)
        return NO_CPU;
    if (host->scheduler.queues > 1)
        return preempts(queue, slot, slot->task.cpu) ? slot->task.cpu : NO_CPU;
    for (uint32_t cpu = unseen(0); cpu < host->scheduler.cpus && can_loop; cpu++) {
        if (!preempts(queue, slot, cpu))
            continue;
        if (found == NO_CPU || preempts(queue, host->occupant[found % POLICY_CPUS_MAX], cpu))
            found = cpu;
    }
    return found;
}

/* The lowest CPU without a thread on which `slot` may run; NO_CPU: there is none. */
static __noinline uint32_t find_idle(const slot_t *slot)
{
    for (uint32_t cpu = unseen(0); cpu < host->scheduler.cpus && can_loop; cpu++) {
        if (!host->occupant[cpu % POLICY_CPUS_MAX] && may_run_on(slot, cpu))
            return cpu;
    }
    return NO_CPU;
}

/*
 * `slot` was queued: an idle CPU of the queue should run it, or a busy one give
 * way to it; else an idle CPU of another queue may come and take it.
 */
static __noinline uint64_t announce(queue_t *queue, slot_t *slot)
{
    uint32_t own = slot->task.cpu;
    if (!host->occupant[own % POLICY_CPUS_MAX])
        return ERRAND(ERRAND_WAKE, own);
    uint32_t idle = unseen(find_idle(slot));
    if (idle != NO_CPU && host->scheduler.queues == 1)
        return ERRAND(ERRAND_WAKE, idle);
    uint32_t preempted = unseen(find_preempted(queue, slot));
    if (preempted != NO_CPU) {
        slot_t *running = host->occupant[preempted % POLICY_CPUS_MAX];
        if (running && !running->turn)
            running->turn = ENQUEUE_PREEMPTED + 1;
        return ERRAND(ERRAND_PREEMPT, preempted);
    }
    return idle != NO_CPU ? ERRAND(ERRAND_WAKE, idle) : ERRAND(ERRAND_NONE, 0);
}

/*
 * Moves a queued thread from one queue to the other; both are locked. Null: the
 * policy has nobody to move, or chose one that Linux does not let run there.
 */
static __noinline slot_t *move(queue_t *from, queue_t *to, uint32_t cpu)
{
    task_t *task = policy_steal(&POLICY, &from->view, cpu);
    if (!task)
        return NULL;
    slot_t *slot = slot_of_task(task);
    taken_out(from, slot);
    if (!may_run_on(slot, cpu)) {
        queue_add(from, slot, ENQUEUE_MOVED);
        return NULL;
    }
    slot->task.cpu = cpu;
    queue_add(to, slot, ENQUEUE_MOVED);
    return slot;
}

/* No lock. The CPU for a thread that is forked or woken. */
static __noinline uint32_t place_thread(const slot_t *slot, uint32_t reason, uint32_t otherwise)
{
    uint32_t cpu = otherwise;
    if (host->scheduler.queues > 1)
        cpu = policy_place(&POLICY, &host->scheduler, &slot->task, (enum enqueue_reason)reason);
    if (may_run_on(slot, cpu))
        return cpu;
    return may_run_on(slot, otherwise) ? otherwise : lowest_allowed(slot);
}

#endif
