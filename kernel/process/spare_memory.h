/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_PROCESS_SPARE_MEMORY_H
#define KERNEL_PROCESS_SPARE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Memory that the kernel keeps only to be faster: blocks of the disk, stacks of
 * processes that have ended. A caller that gets no page takes one from there before
 * it gives up.
 */

/* Returns how many pages there are of it: about as many more can be had than are free. */
uint64_t spare_memory_pages(void);
/*
 * Frees some of it. Returns true if that is a page or more. It may wait for the disk: no lock
 * may be held, and no operation of the file system be under way. `again`: the caller has asked
 * before, and still has too little. Stacks do not count then: a fork that fails leaves one
 * behind each time.
 */
bool spare_memory_give(bool again);

#endif
