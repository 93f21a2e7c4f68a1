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
 *
 * Memory can be promised before it is taken: each user but one of a page that is
 * shared copy-on-write is promised a copy. Only page_allocate_promised() takes the
 * last pages, as many as there are promises: then a fork that has succeeded can be
 * lived up to. Or as many as page_keep_promises() says: then more is promised than
 * there is, and the last to write get none.
 */

/*
 * Hands a range of physical memory to the allocator, once, at boot. Its first pages
 * hold the counts; what lies beyond the kernel's direct map (128 GiB) is not used.
 */
void page_init(physical_t start, physical_t end);

/* Returns a page with one user, not cleared, or null if memory is short. */
void *page_allocate(void);
/* Does the same, all zero. */
void *page_allocate_zeroed(void);
/* Returns `count` pages in a row, one user each, not cleared, or null if there is no such row.
 * Slow; at boot. */
void *page_allocate_row(size_t count);

/* Gives the page one user more. */
void page_share(void *page);
/* Takes one user away: the last one frees the page, and gets true. */
bool page_release(void *page);
/* Is there more than one user? */
bool page_shared(const void *page);

/* Once, at boot: of what is promised, at most `most` pages are set aside, and no promise fails. */
void page_keep_promises(uint64_t most);
/* Promises `count` pages. Returns false if fewer are free; all promises are kept. */
bool page_promise(uint64_t count);
/* `count` of the promised pages will not be needed, or have been taken. */
void page_promise_end(uint64_t count);
/* Returns a page that was promised, not cleared, with one user, or null if none was promised, or
 * none is left. */
void *page_allocate_promised(void);

uint64_t page_total(void);
/* Pages that are free and not set aside. */
uint64_t page_free_count(void);

#endif
