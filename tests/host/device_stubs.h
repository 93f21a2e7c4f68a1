/* SPDX-License-Identifier: MIT */
#ifndef TESTS_HOST_DEVICE_STUBS_H
#define TESTS_HOST_DEVICE_STUBS_H

/*
 * For tests of device drivers: one CPU, locks that check their pairing, physical addresses equal to
 * the host's addresses, and a device's registers as functions of the test. Include it before the
 * driver's source.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define KERNEL_DEVICE_MMIO_H /* replaces kernel/device/mmio.h */
#include "kernel/memory/layout.h"
uint8_t mmio_read_8(physical_t address);
uint32_t mmio_read_32(physical_t address);
void mmio_write_8(physical_t address, uint8_t value);
void mmio_write_32(physical_t address, uint32_t value);
static inline void mmio_fence(void)
{
}

#include "kernel/device/device_tree.h"
#include "kernel/lib/panic.h"
#include "kernel/lib/print.h"
#include "kernel/sync/spinlock.h"

struct machine machine;

void *physical_to_pointer(physical_t address)
{
    return (void *)address;
}

physical_t pointer_to_physical(const void *pointer)
{
    return (physical_t)pointer;
}

static unsigned notes; /* messages in the log */

void print(const char *format, ...)
{
    (void)format;
    notes++;
}

static jmp_buf *after_panic; /* null: a panic fails the test */

_Noreturn void panic(const char *format, ...)
{
    if (after_panic)
        longjmp(*after_panic, 1);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    exit(1);
}

/* Returns whether the function ends in a panic. */
__attribute__((unused)) static bool panics(void (*function)(void))
{
    jmp_buf recovery;
    volatile bool panicked = true;
    after_panic = &recovery;
    if (setjmp(recovery) == 0) {
        function();
        panicked = false;
    }
    after_panic = NULL;
    return panicked;
}

static unsigned locks_held;

void spinlock_init(struct spinlock *lock, const char *name, enum lock_rank rank)
{
    *lock = (struct spinlock){.name = name, .rank = rank};
}

void spinlock_acquire(struct spinlock *lock)
{
    check(!lock->locked);
    lock->locked = 1;
    locks_held++;
}

void spinlock_release(struct spinlock *lock)
{
    check(lock->locked);
    lock->locked = 0;
    locks_held--;
}

static uint64_t random_state = 20261121;

/* xorshift64* (Marsaglia 2003, Vigna 2016) */
__attribute__((unused)) static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * 0x2545f4914f6cdd1dull) >> 32) % limit;
}

#endif
