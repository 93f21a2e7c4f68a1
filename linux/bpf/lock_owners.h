/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_LOCK_OWNERS_H
#define LINUX_BPF_LOCK_OWNERS_H

/*
 * The wait graph, for a policy that asks for it. Linux knows the owner of a lock that passes
 * priorities on: an rt_mutex. The kernel uses one for a FUTEX_LOCK_PI futex with waiters.
 * Everything else that threads wait for has no owner here, plain futexes included.
 *
 * A thread that blocks on such a lock waits for its owner. When it wakes, it has received the lock,
 * or another thread owns the lock, or it has given up. The owner for the lock's other waiters is
 * then looked up again.
 *
 * waits_lock guards the links between tasks. It is taken before a run queue's lock; a policy reads
 * the links under the run queue's lock.
 */

#include "locked_queues.h"

#include "policies/support/wait_links.h"

#define NO_SLOT UINT32_MAX

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct lock);
} waits_lock SEC(".maps");

static __always_inline struct lock *lock_of_waits(void)
{
    uint32_t key = 0;
    return bpf_map_lookup_elem(&waits_lock, &key);
}

/* ---- Linux's data ---- */

/* Returns the lock that the thread waits for, or waited for until it was woken; 0: none. */
static __always_inline uint64_t lock_waited_for(struct task_struct *thread)
{
    return (uint64_t)BPF_CORE_READ(thread, pi_blocked_on, lock);
}

/* Returns the PID of the lock's owner. During a handover, returns the next owner: the first
 * waiter. 0: none. (It may change at any moment.) */
static __noinline int32_t owner_of_lock(uint64_t place)
{
    struct rt_mutex_base *lock = (struct rt_mutex_base *)place;
    uint64_t owner = (uint64_t)BPF_CORE_READ(lock, owner) & ~1ull; /* 1: others wait */
    uint64_t first = (uint64_t)BPF_CORE_READ(lock, waiters.rb_leftmost);
    if (!owner && first) {
        uint64_t waiter = first - bpf_core_field_offset(struct rt_mutex_waiter, tree.entry);
        owner = (uint64_t)BPF_CORE_READ((struct rt_mutex_waiter *)waiter, task);
    }
    return owner ? BPF_CORE_READ((struct task_struct *)owner, pid) : 0;
}

/* Returns the number of the thread's slot, or NO_SLOT. */
static __noinline uint32_t slot_of_pid(int32_t pid)
{
    struct task_struct *thread = pid ? bpf_task_from_pid(pid) : NULL;
    if (!thread)
        return NO_SLOT;
    slot_t *slot = slot_of(thread);
    uint32_t number = slot ? slot->task.slot : NO_SLOT;
    bpf_task_release(thread);
    return number;
}

/* ---- notifying the policy ---- */

/* Needs both locks. Returns the errand to run once no lock is held. */
static __always_inline uint64_t waiters_changed(queue_t *queue, slot_t *owner,
                                                struct queued *queued)
{
    if (!run_queue_waiters_changed(&POLICY, &queue->view, &owner->task))
        return 0;
    if (owner->place == PLACE_QUEUED) {
        queue_remove(queue, owner);
        queue_add(queue, owner, ENQUEUE_MOVED);
        queued_note(queued, owner);
        return announce(queue, owner);
    }
    if (owner->place != PLACE_CPU)
        return 0;
    if (!owner->turn)
        owner->turn = ENQUEUE_PREEMPTED + 1;
    return ERRAND(ERRAND_CHANGE, owner->task.cpu);
}

/* Notifies the policy that the tasks that wait for `owner` changed. Returns the slot to notify
 * next, or NO_SLOT. That is the task that the owner waits for, or again the owner if it moved to
 * another queue before its queue was locked. */
PROVED uint32_t notify_owner(slot_t *owner ARENA)
{
    uint64_t errand = 0;
    uint64_t now = clock_ns();
    uint32_t cpu = owner->task.cpu;
    uint32_t next = owner->task.slot;
    struct lock *waits = lock_of_waits();
    struct lock *lock = lock_of(cpu);
    struct queued queued;
    queued_begin(&queued, now);
    if (!waits || !lock || bpf_res_spin_lock(&waits->spin)) {
        queued_end(&queued);
        return NO_SLOT;
    }
    if (bpf_res_spin_lock(&lock->spin)) {
        bpf_res_spin_unlock(&waits->spin);
        queued_end(&queued);
        return NO_SLOT;
    }
    queue_t *queue = queue_of(cpu);
    begin_hooks(queue, now);
    if (queue_number(owner->task.cpu) == queue_number(cpu)) {
        errand = waiters_changed(queue, owner, &queued);
        next = owner->task.waits_for ? owner->task.waits_for->slot : NO_SLOT;
    }
    struct wishes wishes;
    take_wishes(queue, &wishes);
    bpf_res_spin_unlock(&lock->spin);
    bpf_res_spin_unlock(&waits->spin);
    see_to(queue, &wishes);
    queued_end(&queued);
    run_errand(errand);
    return next;
}

static __noinline void notify_owners(uint32_t number)
{
    for (uint32_t left = unseen(OWNERS_MAX); left > 0 && number < SLOTS_MAX && can_loop; left--)
        number = unseen(notify_owner(&host->slots[number]));
}

/* ---- changes ---- */

/* Returns the slot of the previous owner, or NO_SLOT. */
static __noinline uint32_t unlink(slot_t *slot)
{
    uint32_t before = slot->task.waits_for ? slot->task.waits_for->slot : NO_SLOT;
    if (before != NO_SLOT)
        unlink_waiter(&slot->task);
    return before;
}

static __noinline void link_to(slot_t *slot, slot_t *owner, uint64_t lock)
{
    struct lock *waits = lock_of_waits();
    if (!waits || bpf_res_spin_lock(&waits->spin))
        return;
    unlink(slot);
    slot->waits_on = lock;
    link_waiter(&slot->task, &owner->task);
    bpf_res_spin_unlock(&waits->spin);
}

/* Called when the thread has just blocked. */
static __always_inline void begin_wait(struct task_struct *thread, slot_t *slot)
{
    if (!POLICY.waiters_changed || !host->scheduler.follows_waits || !thread->pi_blocked_on)
        return;
    uint64_t lock = lock_waited_for(thread);
    uint32_t owner = slot_of_pid(owner_of_lock(lock));
    if (owner >= SLOTS_MAX || owner == slot->task.slot)
        return;
    link_to(slot, &host->slots[owner], lock);
    notify_owners(owner);
}

/* Makes the tasks that wait for `before` on the same lock wait for `heir`. The heir may be one
 * of them, or null if the policy does not manage it. Needs waits_lock. */
static __noinline void hand_on(slot_t *before, slot_t *heir, uint64_t lock)
{
    task_t *next;
    for (task_t *task = before->task.first_waiter; task && can_loop; task = next) {
        next = task->next_waiter;
        if (slot_of_task(task)->waits_on != lock)
            continue;
        unlink_waiter(task);
        if (heir && heir != slot_of_task(task))
            link_waiter(task, &heir->task);
    }
}

/* Ends the thread's wait; `owner` is the slot of the lock's present owner. Returns the slot of
 * the previous owner. */
static __noinline uint32_t end_link(slot_t *slot, uint32_t owner)
{
    struct lock *waits = lock_of_waits();
    if (!waits || bpf_res_spin_lock(&waits->spin))
        return NO_SLOT;
    uint32_t before = unlink(slot);
    if (before < SLOTS_MAX && owner != before)
        hand_on(&host->slots[before], owner < SLOTS_MAX ? &host->slots[owner] : NULL,
                slot->waits_on);
    bpf_res_spin_unlock(&waits->spin);
    return before;
}

/* Called when the thread is woken. */
static __always_inline void end_wait(struct task_struct *thread, slot_t *slot)
{
    if (!POLICY.waiters_changed || !slot->task.waits_for)
        return;
    uint64_t lock = lock_waited_for(thread);
    uint32_t owner = lock ? unseen(slot_of_pid(owner_of_lock(lock))) : NO_SLOT;
    uint32_t before = unseen(end_link(slot, owner));
    notify_owners(before);
    if (owner != before)
        notify_owners(owner);
}

/* Notifies of a changed attribute of the thread, which may wait. Interrupts are on. */
static __always_inline void notify_change(const slot_t *slot)
{
    unsigned long flags;
    if (!POLICY.waiters_changed || !slot->task.waits_for)
        return;
    bpf_local_irq_save(&flags);
    notify_owners(slot->task.waits_for->slot);
    bpf_local_irq_restore(&flags);
}

/* The thread has ended, or the policy ends: it waits for no task, and none for it. */
static __always_inline void leave_waits(slot_t *slot)
{
    struct lock *waits = POLICY.waiters_changed ? lock_of_waits() : NULL;
    if (!waits || bpf_res_spin_lock(&waits->spin))
        return;
    unlink(slot);
    drop_waiters(&slot->task);
    bpf_res_spin_unlock(&waits->spin);
}

#endif
