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

/* Notifies waiting processes of another owner; usually there are none. */
static void name_owner(struct mutex *mutex, int pid)
{
    if (!list_empty(&mutex->waiters.waiters))
        wait_queue_set_owner(&mutex->waiters, pid);
}

void mutex_acquire(struct mutex *mutex)
{
    struct process *self = current_process();
    spinlock_acquire(&mutex->lock);
    kernel_assert(mutex->owner != self);
    while (mutex->owner) {
        mutex->waiters.owner = mutex->owner->pid;
        wait_on_always(&mutex->waiters, &mutex->lock, BLOCK_LOCK);
    }
    mutex->owner = self;
    name_owner(mutex, self->pid);
    spinlock_release(&mutex->lock);
}

void mutex_release(struct mutex *mutex)
{
    spinlock_acquire(&mutex->lock);
    kernel_assert(mutex->owner == current_process());
    mutex->owner = NULL;
    wake_one(&mutex->waiters);
    name_owner(mutex, 0); /* until another process takes it */
    spinlock_release(&mutex->lock);
}
