/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_LOCKED_QUEUES_H
#define LINUX_BPF_LOCKED_QUEUES_H

/* Operations with run queues locked. Each function locks what it needs, and runs the resulting
 * errand once no lock is held. */

#include "policy_timers.h"
#include "queued_record.h"

/* Returns false if the policy wants the thread elsewhere: it was then taken out. Needs the
 * queue's lock. */
static __always_inline bool stays(queue_t *queue, slot_t *slot, uint32_t reason)
{
    queue_add(queue, slot, reason);
    if (reason != ENQUEUE_EXPIRED || !slot->moves)
        return true;
    queue_remove(queue, slot);
    return false;
}

/* Puts a thread into the queue of `cpu`, if it stays there. Returns false if the lock could not
 * be taken. */
PROVED bool add_thread(slot_t *slot ARENA, uint32_t cpu, uint32_t reason)
{
    uint64_t now = clock_ns();
    struct lock *lock = lock_of(cpu);
    struct queued queued;
    queued_begin(&queued, now);
    if (!lock || bpf_res_spin_lock(&lock->spin)) {
        queued_end(&queued);
        return false;
    }
    queue_t *queue = queue_of(cpu);
    begin_hooks(queue, now);
    slot->task.cpu = cpu;
    uint64_t errand = 0;
    if (stays(queue, slot, reason)) {
        queued_note(&queued, slot);
        errand = announce(queue, slot);
    }
    unlock(lock, queue);
    queued_end(&queued);
    run_errand(errand);
    return true;
}

/* Removes a thread from its queue or its CPU. Returns false if the lock could not be taken, or
 * if the thread moved to another queue before its queue was locked. */
static __noinline bool remove_thread(slot_t *slot, uint32_t stop)
{
    uint64_t now = clock_ns();
    uint32_t cpu = slot->task.cpu;
    struct lock *lock = lock_of(cpu);
    if (!lock || bpf_res_spin_lock(&lock->spin))
        return false;
    queue_t *queue = queue_of(cpu);
    begin_hooks(queue, now);
    bool moved = queue_number(slot->task.cpu) != queue_number(cpu);
    if (!moved && slot->place == PLACE_CPU)
        leave(queue, slot, stop);
    else if (!moved && slot->place == PLACE_QUEUED)
        queue_remove(queue, slot);
    unlock(lock, queue);
    return !moved;
}

/* Removes a thread, even if it moves to other queues in between. */
PROVED void take_away(slot_t *slot ARENA, uint32_t stop)
{
    while (can_loop) {
        if (remove_thread(slot, stop))
            return;
    }
    give_up("was ended: a run queue stays locked");
}

struct choice {
    slot_t *slot;    /* null: no thread */
    uint32_t cpu;    /* the CPU where it must run */
    uint32_t queued; /* the number of threads that stayed queued */
    uint64_t remark;
};

static __always_inline void note_choice(struct choice *choice, queue_t *queue, slot_t *slot,
                                        uint32_t cpu)
{
    choice->slot = slot;
    if (!slot)
        return;
    choice->cpu = allowed_cpu(&host->scheduler, &slot->task, cpu);
    enter(queue, slot, choice->cpu, queue->view.turn_end);
    choice->queued = queue->view.queued;
    choice->remark = queue->view.remark;
}

/* Picks from the CPU's own queue, after requeueing `leaving`, the thread whose turn has ended,
 * or null. `leaving` may have to go elsewhere instead. Returns false if the lock could not be
 * taken. */
PROVED bool choose_home(uint32_t cpu, slot_t *leaving ARENA, struct choice *choice)
{
    uint64_t now = clock_ns();
    struct lock *lock = lock_of(cpu);
    struct queued queued;
    queued_begin(&queued, now);
    if (!choice || !lock || bpf_res_spin_lock(&lock->spin)) {
        queued_end(&queued);
        return false;
    }
    queue_t *queue = queue_of(cpu);
    begin_hooks(queue, now);
    if (leaving && leaving->place == PLACE_CPU && leaving->turn) {
        uint32_t reason = leaving->turn - 1;
        leave(queue, leaving, STOP_RUNNABLE);
        leaving->custody = CUSTODY_LEAVING;
        if (stays(queue, leaving, reason))
            queued_note(&queued, leaving);
    }
    note_choice(choice, queue, queue_pick(queue, cpu), cpu);
    unlock(lock, queue);
    queued_end(&queued);
    return true;
}

/* Moves one thread between the queues of two CPUs; the queue of the lower CPU is locked first.
 * Returns the errand to run once no lock is held. */
PROVED uint64_t move_locked(uint32_t from, uint32_t to, uint32_t low, uint32_t high)
{
    uint64_t errand = 0;
    uint64_t now = clock_ns();
    struct lock *first = lock_of(low);
    struct lock *second = lock_of(high);
    struct queued queued;
    queued_begin(&queued, now);
    if (!first || !second || low == high || bpf_res_spin_lock(&first->spin)) {
        queued_end(&queued);
        return 0;
    }
    if (bpf_res_spin_lock(&second->spin)) {
        bpf_res_spin_unlock(&first->spin);
        queued_end(&queued);
        return 0;
    }
    begin_hooks(queue_of(from), now);
    begin_hooks(queue_of(to), now);
    slot_t *slot = move(queue_of(from), queue_of(to), to);
    if (slot) {
        queued_note(&queued, slot);
        errand = announce(queue_of(to), slot);
    }
    struct wishes of_from, of_to;
    take_wishes(queue_of(from), &of_from);
    take_wishes(queue_of(to), &of_to);
    bpf_res_spin_unlock(&second->spin);
    bpf_res_spin_unlock(&first->spin);
    see_to(queue_of(from), &of_from);
    see_to(queue_of(to), &of_to);
    queued_end(&queued);
    return errand;
}

static __always_inline uint64_t move_between(uint32_t from, uint32_t to)
{
    return move_locked(from, to, from < to ? from : to, from < to ? to : from);
}

/* Pulls a thread to `cpu` if the policy names a CPU as its source. Returns false if it names
 * none. */
PROVED bool pull(uint32_t cpu, bool idle)
{
    uint32_t from = unseen(policy_balance(&POLICY, &host->scheduler, cpu, idle));
    if (from == NO_CPU)
        return false;
    uint64_t errand = move_between(from, cpu);
    if (!idle)
        run_errand(errand);
    return true;
}

/* A blocked thread is about to be queued elsewhere, or to leave the policy. */
PROVED void forget(slot_t *slot ARENA)
{
    uint64_t now = clock_ns();
    struct lock *lock = lock_of(slot->task.cpu);
    if (!lock || bpf_res_spin_lock(&lock->spin)) {
        give_up("was ended: a run queue stays locked");
        return;
    }
    queue_t *queue = queue_of(slot->task.cpu);
    begin_hooks(queue, now);
    run_queue_forget(&POLICY, &queue->view, &slot->task);
    unlock(lock, queue);
}

/* Handles a running thread that the policy did not pick: its class has just changed, or Linux
 * chose it. */
PROVED void occupy(slot_t *slot ARENA, uint32_t cpu, uint64_t now)
{
    struct lock *lock = lock_of(cpu);
    if (slot->place == PLACE_QUEUED)
        take_away(slot, STOP_RUNNABLE);
    if (POLICY.leave && slot->stopped == STOP_BLOCKED)
        forget(slot);
    if (!lock || bpf_res_spin_lock(&lock->spin))
        return;
    queue_t *queue = queue_of(cpu);
    begin_hooks(queue, now);
    slot->custody = CUSTODY_LINUX;
    slot->known = 0;
    slot->fresh = 0;
    slot->stopped = 0;
    enter(queue, slot, cpu, 0);
    slot->turn = ENQUEUE_ADOPTED + 1; /* from the next tick */
    bpf_res_spin_unlock(&lock->spin);
}

/* Needs the queue's lock; the thread has a CPU of the queue. */
static __always_inline uint32_t call_tick(queue_t *queue, slot_t *slot)
{
    uint32_t verdict = run_queue_tick(&POLICY, &queue->view, &slot->task);
    if (POLICY.turn_over && queue->view.turn_end)
        slot->turn_end = queue->view.turn_end;
    return verdict;
}

static __always_inline uint32_t call_turn_over(queue_t *queue, slot_t *slot)
{
    if (!slot->turn_end || slot->turn_end > queue->view.now)
        return TICK_CONTINUE;
    uint32_t verdict = run_queue_turn_over(&POLICY, &queue->view, &slot->task);
    slot->turn_end = queue->view.turn_end;
    return verdict;
}

/* Asks the policy about the thread that runs on `cpu`, at a tick or at the end of its turn.
 * Returns TICK_PREEMPT if the turn ends, wherever the thread continues. */
PROVED uint32_t judge(slot_t *slot ARENA, uint32_t cpu, bool at_tick)
{
    uint32_t verdict = TICK_CONTINUE;
    uint64_t now = clock_ns();
    struct lock *lock = lock_of(cpu);
    if (!lock || bpf_res_spin_lock(&lock->spin))
        return verdict;
    queue_t *queue = queue_of(cpu);
    begin_hooks(queue, now);
    account(slot, queue->view.now);
    if (!slot->known)
        slot->turn = ENQUEUE_ADOPTED + 1;
    else if (slot->place == PLACE_CPU)
        verdict =
            !POLICY.turn_over || at_tick ? call_tick(queue, slot) : call_turn_over(queue, slot);
    bool over = verdict == TICK_PREEMPT || verdict == TICK_MOVE;
    if (over) {
        slot->turn = ENQUEUE_EXPIRED + 1;
        slot->moves = verdict == TICK_MOVE;
    }
    unlock(lock, queue);
    return over ? TICK_PREEMPT : verdict;
}

PROVED void push(uint32_t cpu)
{
    uint32_t to = unseen(policy_push(&POLICY, &host->scheduler, cpu));
    if (to != NO_CPU)
        run_errand(move_between(cpu, to));
}

/* The offset of an attribute in struct task, and its size times 2^32. */
#define ATTRIBUTE_PLACE(kind, field, type, lowest, first, highest, inherited)                      \
    case ATTRIBUTE_##kind:                                                                         \
        return __builtin_offsetof(struct task, field) | (uint64_t)sizeof(type) << 32;

/* Hides the kind from the verifier, which would otherwise follow a path for each kind. */
PROVED uint64_t attribute_place(uint32_t kind)
{
    switch (kind) {
        ATTRIBUTES(ATTRIBUTE_PLACE)
    }
    return 0;
}

static __always_inline void store_attribute(slot_t *slot, uint64_t place, int64_t value)
{
    uint8_t SHARED_MEMORY *field = (uint8_t SHARED_MEMORY *)&slot->task + (uint32_t)place;
    if (place >> 32 == sizeof(int64_t))
        *(int64_t SHARED_MEMORY *)field = value;
    else
        *(int32_t SHARED_MEMORY *)field = (int32_t)value;
}

/* Requeues a queued thread; the CPU of a running thread picks again. Returns the errand to run
 * once no lock is held. Needs the queue's lock. */
static __noinline uint64_t change_locked(queue_t *queue, slot_t *slot, uint64_t place,
                                         int64_t value)
{
    if (slot->place == PLACE_QUEUED) {
        queue_remove(queue, slot);
        store_attribute(slot, place, value);
        run_queue_changed(&POLICY, &queue->view, &slot->task);
        queue_add(queue, slot, ENQUEUE_MOVED);
        return announce(queue, slot);
    }
    store_attribute(slot, place, value);
    run_queue_changed(&POLICY, &queue->view, &slot->task);
    if (slot->place != PLACE_CPU)
        return 0;
    if (!slot->turn)
        slot->turn = ENQUEUE_PREEMPTED + 1;
    return ERRAND(ERRAND_CHANGE, slot->task.cpu);
}

/* Returns false if the thread moved to another queue in between, or the lock could not be taken. */
static __noinline bool change_slot(slot_t *slot, uint64_t place, int64_t value)
{
    uint64_t now = clock_ns();
    uint32_t cpu = slot->task.cpu;
    struct lock *lock = lock_of(cpu);
    struct queued queued;
    queued_begin(&queued, now);
    if (!lock || bpf_res_spin_lock(&lock->spin)) {
        queued_end(&queued);
        return false;
    }
    uint64_t errand = 0;
    queue_t *queue = queue_of(cpu);
    begin_hooks(queue, now);
    bool exists = queue_number(slot->task.cpu) == queue_number(cpu);
    if (exists)
        errand = change_locked(queue, slot, place, value);
    if (exists && slot->place == PLACE_QUEUED)
        queued_note(&queued, slot);
    unlock(lock, queue);
    queued_end(&queued);
    run_errand(errand);
    return exists;
}

/* Sets the attribute of a thread to `value`, for the trace and for the policy; `slot` is null if
 * the policy does not manage it. */
static __noinline void change_task(slot_t *slot, uint32_t pid, uint32_t kind, int64_t value)
{
    unsigned long flags;
    uint64_t place = attribute_place(kind);
    bpf_local_irq_save(&flags);
    trace_emit(TRACE_ATTRIBUTE, pid, kind, (uint64_t)value);
    if (slot && host) {
        while (can_loop) {
            if (change_slot(slot, place, value))
                break;
        }
    }
    bpf_local_irq_restore(&flags);
}

#endif
