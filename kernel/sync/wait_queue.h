/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SYNC_WAIT_QUEUE_H
#define KERNEL_SYNC_WAIT_QUEUE_H

#include "abi/process_info.h"
#include "lib/list.h"
#include "spinlock.h"

/*
 * A condition variable: processes wait until another wakes them. The caller's spin lock guards the
 * condition, which is checked again after each wait:
 *
 *     spinlock_acquire(&lock);
 *     while (!condition && !error)
 *         error = wait_on(&queue, &lock, BLOCK_PIPE);
 *
 * The cost of waking grows with the number of woken processes, not of blocked ones.
 */
struct wait_queue {
    struct spinlock lock;
    struct list waiters;
    int owner; /* PID of the process that must act before they continue; 0: not known. Guarded by
                * the condition's lock */
};

void wait_queue_init(struct wait_queue *queue, const char *name);

/* Names the process that must act, also to processes that already wait: `owner` alone applies to
 * later ones. The caller holds the condition's lock. */
void wait_queue_set_owner(struct wait_queue *queue, int owner);

/*
 * Blocks the current process; `lock` is released while it waits, and held again
 * on return. It must be the only spin lock held. Returns 0, or -EINTR at once
 * if the process has been killed. May return without having been woken.
 */
int wait_on(struct wait_queue *queue, struct spinlock *lock, enum block_reason reason);

/* Does the same for a wait that must not be interrupted (a disk transfer): a kill does not end
 * it. */
void wait_on_always(struct wait_queue *queue, struct spinlock *lock, enum block_reason reason);

/* Wakes the process that has waited longest. */
void wake_one(struct wait_queue *queue);
void wake_all(struct wait_queue *queue);

#endif
