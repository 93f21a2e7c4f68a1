/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SYNC_WAIT_QUEUE_H
#define KERNEL_SYNC_WAIT_QUEUE_H

#include "abi/process_info.h"
#include "lib/list.h"
#include "spinlock.h"

/*
 * Where processes wait until another wakes them: a condition variable. The
 * condition is guarded by a spin lock of the caller's, and is looked at again
 * after each wait:
 *
 *     spinlock_acquire(&lock);
 *     while (!condition && !error)
 *         error = wait_on(&queue, &lock, BLOCK_PIPE);
 *
 * The cost of waking grows with the processes that are woken, not with those that are blocked.
 */
struct wait_queue {
    struct spinlock lock;
    struct list waiters;
    int owner; /* PID of the process that must act before they go on; 0: not known. Guarded by the
                  condition's lock */
};

void wait_queue_init(struct wait_queue *queue, const char *name);

/* Names the process that must act, also to those that wait already: `owner` alone is for those that
 * will. The caller holds the condition's lock. */
void wait_queue_set_owner(struct wait_queue *queue, int owner);

/*
 * Blocks the current process; `lock` is released meanwhile, and held again on
 * return. It must be the only spin lock held. Gives 0, or -EINTR at once if the
 * process has been killed. May return without having been woken.
 */
int wait_on(struct wait_queue *queue, struct spinlock *lock, enum block_reason reason);

/* The same for what must not be cut short (a disk transfer): a kill does not end it. */
void wait_on_always(struct wait_queue *queue, struct spinlock *lock, enum block_reason reason);

/* In the order in which they began to wait. */
void wake_one(struct wait_queue *queue);
void wake_all(struct wait_queue *queue);

#endif
