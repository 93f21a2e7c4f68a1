/* SPDX-License-Identifier: MIT */
#ifndef TESTS_HOST_MEMORY_MACHINE_H
#define TESTS_HOST_MEMORY_MACHINE_H

/*
 * A machine for tests of the kernel's memory: RAM, locks that check themselves, an allocator that
 * fails on demand, and a simulated memory management unit. The unit walks Sv39 tables as the
 * privileged specification says, and caches translations until they are invalidated. It includes
 * kernel/memory/page.c; a test includes all other sources that it needs.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/memory/page.h"

/* Renames page.c's functions: the versions that other code sees may fail on demand. */
#define page_allocate        memory_page_allocate
#define page_allocate_zeroed memory_page_allocate_zeroed
#define page_promise         memory_page_promise
void *page_allocate(void);
bool page_promise(uint64_t count);
#include "kernel/memory/page.c"
#undef page_allocate
#undef page_allocate_zeroed
#undef page_promise

#include "kernel/memory/translation.h"
#include "kernel/process/process.h"

#include "check.h"

#define RAM_START 0x80000000ul

static char *ram;
static uint64_t ram_bytes;
static uint64_t machine_satp;
static unsigned preemptions;

/* Random numbers: xorshift64* (Vigna 2016). */
static uint64_t random_state = 0x9e3779b97f4a7c15;

static inline uint64_t random_number(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1d;
}

static inline uint64_t random_below(uint64_t limit)
{
    return random_number() % limit;
}

void *physical_to_pointer(physical_t address)
{
    check(address >= RAM_START && address < RAM_START + ram_bytes);
    return ram + (address - RAM_START);
}

physical_t pointer_to_physical(const void *pointer)
{
    uint64_t offset = (uint64_t)((const char *)pointer - ram);

    check(offset < ram_bytes);
    return RAM_START + offset;
}

_Noreturn void panic(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

/* Locks: never acquired twice, and in the order of their ranks. */
static struct spinlock *last_held;

void spinlock_init(struct spinlock *lock, const char *name, enum lock_rank rank)
{
    *lock = (struct spinlock){.name = name, .rank = rank};
}

void spinlock_acquire(struct spinlock *lock)
{
    check(lock->name != NULL && !lock->locked);
    check(last_held == NULL || last_held->rank < lock->rank);
    lock->locked = 1;
    lock->next_acquired = last_held;
    last_held = lock;
}

void spinlock_release(struct spinlock *lock)
{
    check(last_held == lock && lock->locked);
    last_held = lock->next_acquired;
    lock->locked = 0;
}

/* Number of allocations that may still succeed; negative: unlimited. */
static int64_t allocations_left = -1;

static inline bool allocation_fails(void)
{
    if (allocations_left == 0)
        return true;
    if (allocations_left > 0)
        allocations_left--;
    return false;
}

void *page_allocate(void)
{
    return allocation_fails() ? NULL : memory_page_allocate();
}

void *page_allocate_zeroed(void)
{
    return allocation_fails() ? NULL : memory_page_allocate_zeroed();
}

bool page_promise(uint64_t count)
{
    return !(count > 0 && allocation_fails()) && memory_page_promise(count);
}

/* Translations that this CPU has cached. */
enum { TLB_SIZE = 64 };

static struct translation {
    bool valid;
    uint64_t page; /* virtual address */
    uint64_t entry;
} tlb[TLB_SIZE];

uint64_t translation_root(void)
{
    return machine_satp;
}

void translation_flush(void)
{
    memset(tlb, 0, sizeof(tlb));
}

void translation_flush_page(uint64_t address)
{
    struct translation *slot = &tlb[address / PAGE_BYTES % TLB_SIZE];

    if (slot->page == address / PAGE_BYTES * PAGE_BYTES)
        slot->valid = false;
}

void translation_set_root(uint64_t satp)
{
    machine_satp = satp;
    translation_flush();
}

/*
 * Returns the leaf entry for a user address, following the specification (RISC-V privileged
 * architecture, 4.3.2 and 4.4); 0: page fault. Bits 0 to 9 of an entry are V R W X U G A D and two
 * for software; bits from 10 are the page number.
 */
static inline uint64_t machine_walk(uint64_t satp, uint64_t address)
{
    uint64_t table = (satp & ((1ul << 44) - 1)) << 12;

    check(satp >> 60 == 8);
    if ((uint64_t)((int64_t)(address << 25) >> 25) != address)
        return 0;
    for (int level = 2; level >= 0; level--) {
        uint64_t index = address >> (12 + 9 * level) & 511;
        uint64_t entry = ((uint64_t *)physical_to_pointer(table))[index];

        if (!(entry & 1))
            return 0;
        check(entry >> 54 == 0);            /* reserved for extensions that do not exist here */
        check(!(entry & 4) || (entry & 2)); /* writable and not readable: reserved */
        if (entry & 0xe) {
            check(level == 0);
            return entry;
        }
        check((entry & 0xd0) == 0); /* U, A and D are reserved in a pointer to a table */
        table = entry >> 10 << 12;
    }
    check(!"a pointer to a table at level 0");
    return 0;
}

/* Returns the target of a user program's access, or null for a page fault. */
static inline char *machine_access(uint64_t address, enum page_right access)
{
    struct translation *slot = &tlb[address / PAGE_BYTES % TLB_SIZE];
    uint64_t page = address / PAGE_BYTES * PAGE_BYTES;

    if (!slot->valid || slot->page != page) {
        uint64_t entry = machine_walk(machine_satp, address);

        if (entry == 0)
            return NULL;
        *slot = (struct translation){true, page, entry};
    }
    if (!(slot->entry & (uint64_t)access) || !(slot->entry & 16))
        return NULL;
    check(slot->entry & 64);
    check(access != PAGE_WRITE || (slot->entry & 128));
    return (char *)physical_to_pointer(slot->entry >> 10 << 12) + address % PAGE_BYTES;
}

static struct process *machine_process;

struct process *current_process(void)
{
    return machine_process;
}

void address_space_activate(const struct address_space *space);

/* Runs another process for a while. */
void preemption_point(void)
{
    check(last_held == NULL);
    preemptions++;
    address_space_activate(NULL);
    if (machine_process != NULL)
        address_space_activate(&machine_process->space);
}

static inline void machine_init(uint64_t ram_pages)
{
    ram_bytes = ram_pages * PAGE_BYTES;
    ram = aligned_alloc(PAGE_BYTES, ram_bytes);
    check(ram != NULL);
    memset(ram, 0x5a, ram_bytes);
    page_init(RAM_START, RAM_START + ram_bytes);
}

#endif
