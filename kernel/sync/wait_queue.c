/* SPDX-License-Identifier: MIT */

#include "sync/wait_queue.h"

#include "abi/errors.h"
#include "lib/panic.h"
#include "process/lifecycle.h"
#include "process/owners.h"
#include "process/process.h"
#include "scheduler/scheduler.h"

/* A process in a wait queue; lives on its kernel stack. */
struct waiter {
    struct list link; /* guarded by the queue's lock */
    struct process *process;
    bool done; /* woken and removed from the queue: the waker does not access it any more */
};

void wait_queue_init(struct wait_queue *queue, const char *name)
{
    spinlock_init(&queue->lock, name, LOCK_WAIT);
    list_init(&queue->waiters);
    queue->owner = 0;
}

void wait_queue_set_owner(struct wait_queue *queue, int owner)
{
    if (queue->owner == owner)
        return;
    queue->owner = owner;
    if (!scheduler_asks_for_owners())
        return;
    spinlock_acquire(&queue->lock);
    list_for_each(node, &queue->waiters)
    {
        owners_name_again(container_of(node, struct waiter, link)->process, owner);
    }
    spinlock_release(&queue->lock);
}

/*
 * The process counts as blocked before the caller's lock is free. So each later
 * change of the condition finds it in the queue, and no wake-up is lost.
 */
static bool begin_wait(struct wait_queue *queue, struct waiter *waiter, enum block_reason reason,
                       bool killable)
{
    spinlock_acquire(&queue->lock);
    bool blocked = process_block(waiter->process, reason, killable);
    if (blocked)
        list_append(&queue->waiters, &waiter->link);
    spinlock_release(&queue->lock);
    return blocked;
}

static void end_wait(struct wait_queue *queue, struct waiter *waiter)
{
    if (__atomic_load_n(&waiter->done, __ATOMIC_ACQUIRE))
        return;
    spinlock_acquire(&queue->lock);
    list_remove(&waiter->link);
    spinlock_release(&queue->lock);
}

static int wait_for_wakeup(struct wait_queue *queue, struct spinlock *lock,
                           enum block_reason reason, bool killable)
{
    struct waiter waiter = {.process = current_process()};
    kernel_assert(spinlock_held(lock) && !lock->next_acquired);
    if (queue->owner && __builtin_expect(scheduler_asks_for_owners(), 0))
        owners_name(waiter.process, queue->owner);
    if (!begin_wait(queue, &waiter, reason, killable)) {
        owners_woken(waiter.process);
        return -EINTR;
    }
    spinlock_release(lock);
    scheduler_block();
    end_wait(queue, &waiter);
    spinlock_acquire(lock);
    return killable && current_killed() ? -EINTR : 0;
}

int wait_on(struct wait_queue *queue, struct spinlock *lock, enum block_reason reason)
{
    return wait_for_wakeup(queue, lock, reason, true);
}

void wait_on_always(struct wait_queue *queue, struct spinlock *lock, enum block_reason reason)
{
    wait_for_wakeup(queue, lock, reason, false);
}

/* The waiter cannot return, and its process cannot end, before `done` is set: so that is last. */
static void wake_first(struct wait_queue *queue)
{
    struct waiter *waiter = container_of(queue->waiters.next, struct waiter, link);
    process_wake(waiter->process);
    list_remove(&waiter->link);
    __atomic_store_n(&waiter->done, true, __ATOMIC_RELEASE);
}

void wake_one(struct wait_queue *queue)
{
    spinlock_acquire(&queue->lock);
    if (!list_empty(&queue->waiters))
        wake_first(queue);
    spinlock_release(&queue->lock);
}

void wake_all(struct wait_queue *queue)
{
    spinlock_acquire(&queue->lock);
    while (!list_empty(&queue->waiters))
        wake_first(queue);
    spinlock_release(&queue->lock);
}
