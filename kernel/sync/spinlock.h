/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SYNC_SPINLOCK_H
#define KERNEL_SYNC_SPINLOCK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The kernel runs with interrupts off, so a spin lock only excludes other CPUs.
 * A lock knows its owner. Locks are taken in the order of their ranks, lowest
 * first; each acquisition checks that, and a violation is a panic.
 */
enum lock_rank {
    LOCK_PROCESS_TREE = 10, /* parents, children, PIDs */
    LOCK_FILES = 20,        /* open files, pipes, inode and buffer caches, the journal */
    LOCK_CONSOLE = 30,      /* lines of input */
    LOCK_BLOCK = 40,        /* a block device's requests */
    LOCK_MUTEX = 50,        /* inside a sleeping lock */
    LOCK_WAIT = 60,         /* inside a wait queue */
    LOCK_PROCESS = 70,      /* a process's state */
    LOCK_OWNERS = 75,       /* the wait graph */
    LOCK_RUN_QUEUE = 80,    /* a run queue; of two, the lower CPU's first */
    LOCK_TIMER = 85,        /* a CPU's timers */
    LOCK_OBJECTS = 90,      /* an object cache */
    LOCK_PAGES = 95,        /* free pages */
    LOCK_TRACE = 96,        /* full trace blocks */
    LOCK_HOST = 97,         /* the host interface, a trace device */
    LOCK_PRINT = 99,        /* the kernel's log */
};

struct spinlock {
    uint32_t locked;
    uint32_t rank;
    struct cpu *owner;
    const char *name;
    struct spinlock *next_acquired; /* of the same owner, taken before this one */
};

void spinlock_init(struct spinlock *lock, const char *name, enum lock_rank rank);
void spinlock_acquire(struct spinlock *lock);
void spinlock_release(struct spinlock *lock);
/* Takes the lock if it is free. Not bound by the order of ranks: it never waits. */
bool spinlock_try(struct spinlock *lock);
/* Called in a panic, when all other CPUs are parked: locks that they hold are never released. */
void spinlocks_ignore(void);
/* Returns true if this CPU holds it. */
bool spinlock_held(const struct spinlock *lock);

#endif
