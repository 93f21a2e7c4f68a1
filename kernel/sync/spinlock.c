/* SPDX-License-Identifier: MIT */

#include "sync/spinlock.h"

#include <stddef.h>

#include "abi/machine_hints.h"
#include "lib/panic.h"
#include "scheduler/cpu.h"
#include "time/clock.h"

#define PATIENCE 300000000ul /* spins */

static bool ignored;

/* Where an interleaving with another CPU would reveal a missing lock. */
static void hint_at_boundary(void)
{
    __asm__ volatile("slti x0, x0, %0" : : "i"(HINT_LOCK));
}

void spinlocks_ignore(void)
{
    ignored = true;
}

void spinlock_init(struct spinlock *lock, const char *name, enum lock_rank rank)
{
    *lock = (struct spinlock){.name = name, .rank = rank};
}

bool spinlock_held(const struct spinlock *lock)
{
    return __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == this_cpu();
}

/* Run queues may be held together, taken in the order of their addresses, which is the order of
 * CPUs. */
static bool may_follow(const struct spinlock *lock, const struct spinlock *innermost)
{
    if (!innermost || innermost->rank < lock->rank)
        return true;
    return lock->rank == LOCK_RUN_QUEUE && innermost->rank == LOCK_RUN_QUEUE && innermost < lock;
}

static void note_taken(struct spinlock *lock, struct cpu *cpu)
{
    __atomic_store_n(&lock->owner, cpu, __ATOMIC_RELAXED);
    lock->next_acquired = cpu->held;
    cpu->held = lock;
}

/* A lock is held for far less than a tick: a wait of seconds is a deadlock. */
static void spin(struct spinlock *lock, struct cpu *cpu)
{
    uint64_t spins = 0;
    do {
        if (ignored)
            return;
        if (lock->owner == cpu || ++spins > PATIENCE)
            panic("deadlock: lock %s is not given back", lock->name);
        while (__atomic_load_n(&lock->locked, __ATOMIC_RELAXED) && ++spins <= PATIENCE)
            ;
    } while (__atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE));
}

static void wait_for_lock(struct spinlock *lock, struct cpu *cpu)
{
    uint64_t begin = clock_cycles();
    cpu->waits_for = lock;
    spin(lock, cpu);
    cpu->waits_for = NULL;
    if (lock->rank == LOCK_RUN_QUEUE) {
        cpu->queue_waits++;
        cpu->queue_wait_cycles += clock_cycles() - begin;
    } else if (lock->rank == LOCK_PROCESS_TREE || lock->rank == LOCK_PROCESS) {
        cpu->process_waits++;
        cpu->process_wait_cycles += clock_cycles() - begin;
    }
}

void spinlock_acquire(struct spinlock *lock)
{
    struct cpu *cpu = this_cpu();
    hint_at_boundary();
    if (!may_follow(lock, cpu->held) && !ignored)
        panic("lock order: %s taken while %s is held", lock->name, cpu->held->name);
    if (__atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE))
        wait_for_lock(lock, cpu);
    note_taken(lock, cpu);
}

bool spinlock_try(struct spinlock *lock)
{
    if (__atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE))
        return false;
    note_taken(lock, this_cpu());
    return true;
}

void spinlock_release(struct spinlock *lock)
{
    struct cpu *cpu = this_cpu();
    struct spinlock **link = &cpu->held;
    kernel_assert(lock->owner == cpu);
    while (*link != lock)
        link = &(*link)->next_acquired;
    *link = lock->next_acquired;
    __atomic_store_n(&lock->owner, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->locked, 0, __ATOMIC_RELEASE);
    hint_at_boundary();
}
