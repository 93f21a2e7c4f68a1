/* SPDX-License-Identifier: MIT */

#include "sync/mutex.h"

#include <stddef.h>

#include "lib/panic.h"
#include "process/process.h"

void mutex_init(struct mutex *mutex, const char *name)
{
    spinlock_init(&mutex->lock, name, LOCK_MUTEX);
    wait_queue_init(&mutex->waiters, name);
    mutex->owner = NULL;
}

void mutex_acquire(struct mutex *mutex)
{
    struct process *self = current_process();
    spinlock_acquire(&mutex->lock);
    kernel_assert(mutex->owner != self);
    while (mutex->owner)
        wait_on_always(&mutex->waiters, &mutex->lock, BLOCK_LOCK);
    mutex->owner = self;
    spinlock_release(&mutex->lock);
}

void mutex_release(struct mutex *mutex)
{
    spinlock_acquire(&mutex->lock);
    kernel_assert(mutex->owner == current_process());
    mutex->owner = NULL;
    wake_one(&mutex->waiters);
    spinlock_release(&mutex->lock);
}
