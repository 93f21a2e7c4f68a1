/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_MEMORY_POISON_H
#define KERNEL_MEMORY_POISON_H

/*
 * In host tests, free memory is overwritten, and AddressSanitizer reports each
 * use of it. In the kernel these do nothing.
 */
#ifdef HOST_TEST
#include <sanitizer/asan_interface.h>
#include <string.h>

static inline void poison(void *memory, unsigned long bytes)
{
    memset(memory, 0xa5, bytes);
    ASAN_POISON_MEMORY_REGION(memory, bytes);
}

static inline void unpoison(void *memory, unsigned long bytes)
{
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
}
#else
static inline void poison(void *memory, unsigned long bytes)
{
    (void)memory;
    (void)bytes;
}

static inline void unpoison(void *memory, unsigned long bytes)
{
    (void)memory;
    (void)bytes;
}
#endif

#endif
