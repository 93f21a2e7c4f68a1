/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_MEMORY_PAGE_TABLE_H
#define KERNEL_MEMORY_PAGE_TABLE_H

#include "address_space.h"
#include "page.h"

/*
 * Sv39: three levels of tables of 512 entries; level 2 is the root. An entry
 * holds a page number above ten bits of flags; at levels 2 and 1 of a process's
 * half it always points to a table.
 */
enum {
    ENTRY_VALID = 1 << 0,
    ENTRY_USER = 1 << 4,
    ENTRY_ACCESSED = 1 << 6,
    ENTRY_DIRTY = 1 << 7,
    ENTRY_COPY_ON_WRITE = 1 << 8, /* one of two bits reserved for software; the other:
                                   * PAGE_SHARED */
    ENTRY_FLAGS = (1 << 10) - 1,

    ENTRIES = 512,
    ROOT_LEVEL = 2,
};

static inline uint64_t entry_to(const void *page, uint64_t flags)
{
    return pointer_to_physical(page) >> 12 << 10 | flags;
}

static inline void *entry_page(uint64_t entry)
{
    return physical_to_pointer(entry >> 10 << 12);
}

/* Returns the bytes that an entry of a table at this level covers. */
static inline uint64_t entry_span(int level)
{
    return PAGE_BYTES << (9 * level);
}

static inline unsigned entry_index(uint64_t address, int level)
{
    return address >> (12 + 9 * level) & (ENTRIES - 1);
}

/* Returns the level 0 entry for the address, or null if there is no table for it. */
uint64_t *entry_find(uint64_t *table, uint64_t address);
/* Returns the same, with new tables where they are missing, or null if memory is short. */
uint64_t *entry_make(uint64_t *table, uint64_t address);
/* Maps a page of the caller at the address. Returns 0 or -ENOMEM. */
int page_map(uint64_t *root, uint64_t address, void *page, uint64_t flags);

/* The kernel's root table; all address spaces copy its upper half. */
extern uint64_t *kernel_table;

#endif
