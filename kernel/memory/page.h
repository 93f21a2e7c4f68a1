/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_MEMORY_PAGE_H
#define KERNEL_MEMORY_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"

/*
 * Physical pages, each with a count of its users: copy-on-write shares them.
 * Any function here may be called with any lock of a lower rank held.
 */

/* Hands a range of physical memory to the allocator, at boot. Its first pages hold the counts. */
void page_init(physical_t start, physical_t end);

/* A page with one user, not cleared; null: out of memory. */
void *page_allocate(void);
/* The same, all zero. */
void *page_allocate_zeroed(void);
/* `count` pages in a row, one user each, not cleared; null: there is no such row. Slow; at boot. */
void *page_allocate_row(size_t count);

/* One user more, one less; the last one frees it. */
void page_share(void *page);
void page_release(void *page);
/* Is there more than one user? */
bool page_shared(const void *page);

/*
 * Can `count` pages be spared for something new, a process or a larger heap? A part
 * of memory is kept back for the processes that are there: for shared pages that
 * they write to, for lazy heaps, for exec. So it is the new that is refused, with
 * an error, and not the old that is killed.
 */
bool page_can_spare(uint64_t count);

uint64_t page_total(void);
uint64_t page_free_count(void);

#endif
