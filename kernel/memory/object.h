/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_MEMORY_OBJECT_H
#define KERNEL_MEMORY_OBJECT_H

#include <stddef.h>

#include "lib/list.h"
#include "sync/spinlock.h"

/*
 * Objects of one size, at most a page, allocated within pages (Bonwick 1994).
 * Free pages return to the page allocator. Objects are aligned to 16 bytes.
 */
struct object_cache {
    struct spinlock lock;
    size_t object_bytes;
    struct list partial; /* pages with a free object */
    size_t used;
};

void object_cache_init(struct object_cache *cache, const char *name, size_t object_bytes);
/* Returns an object, all zero, or null if memory is short. */
void *object_allocate(struct object_cache *cache);
void object_free(struct object_cache *cache, void *object);

#endif
