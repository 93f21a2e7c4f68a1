/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_PROCESS_SPARE_MEMORY_H
#define KERNEL_PROCESS_SPARE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Memory that the kernel keeps only to be faster: blocks of the disk, stacks of ended processes. A
 * caller that gets no page frees some of it before failing.
 */

/* Returns its number of pages: about this many are available in addition to the free ones. */
uint64_t spare_memory_pages(void);
/*
 * Frees some of it. Returns true if that is a page or more. It may wait for the disk: no lock may
 * be held, and no operation of the file system may be in progress. `again`: the caller has called
 * before, and still has too little. Stacks do not count then, because each failing fork leaves one
 * behind.
 */
bool spare_memory_give(bool again);

#endif
