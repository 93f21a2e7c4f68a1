/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SYNC_MUTEX_H
#define KERNEL_SYNC_MUTEX_H

#include "wait_queue.h"

/* A lock that puts the process to sleep while another holds it; woken in order of arrival. */
struct mutex {
    struct spinlock lock;
    struct wait_queue waiters;
    struct process *owner;
};

void mutex_init(struct mutex *mutex, const char *name);
void mutex_acquire(struct mutex *mutex);
void mutex_release(struct mutex *mutex);

#endif
