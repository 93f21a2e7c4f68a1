/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_MEMORY_PAGE_H
#define KERNEL_MEMORY_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"

/*
 * Physical pages, each with a count of its users: copy-on-write shares them. Any function here may
 * be called with any lock of a lower rank held.
 *
 * Memory can be promised before it is taken: each user but one of a page that is shared
 * copy-on-write is promised a copy. By default as many free pages are reserved as there are
 * promises, and only page_allocate_promised() takes them. Then every successful fork can get its
 * copies. page_keep_promises() may reserve fewer. Then more is promised than available, and the
 * last writers get no page.
 */

/*
 * Hands a range of physical memory to the allocator, once, at boot. Its first pages hold the
 * counts; memory beyond the kernel's direct map (128 GiB) is not used.
 */
void page_init(physical_t start, physical_t end);

/* Returns a page with one user, not cleared, or null if memory is short. */
void *page_allocate(void);
/* Does the same, all zero. */
void *page_allocate_zeroed(void);
/* Returns `count` pages in a row, one user each, not cleared, or null if there is no such row.
 * Slow; at boot. */
void *page_allocate_row(size_t count);

/* Adds a user to the page. */
void page_share(void *page);
/* Removes a user: the last one frees the page, and gets true. */
bool page_release(void *page);
/* Returns true if there is more than one user. */
bool page_shared(const void *page);

/* Limits the pages reserved for promises to `most`; no promise then fails. Called once, at boot. */
void page_keep_promises(uint64_t most);
/* Promises `count` pages. Returns false if fewer are free; all promises are kept. */
bool page_promise(uint64_t count);
/* Ends `count` promises: the pages will not be needed, or have been taken. */
void page_promise_end(uint64_t count);
/* Returns a promised page, not cleared, with one user, or null if none was promised, or none is
 * free. */
void *page_allocate_promised(void);

uint64_t page_total(void);
/* Returns the pages that are free and not reserved. */
uint64_t page_free_count(void);

#endif
