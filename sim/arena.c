/* SPDX-License-Identifier: MIT */

#include "sim/arena.h"

#include <assert.h>
#include <sys/mman.h>

#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define GAP 64 /* bytes between arrays, which AddressSanitizer protects */
#else
#define GAP 0
#endif

#ifdef __wasi__
#define UNRESERVED 0 /* this system's mmap() never reserves memory, so it needs no such flag */
#else
#define UNRESERVED MAP_NORESERVE
#endif

#define LINE 64

bool arena_map(struct arena *arena, size_t bytes)
{
    void *base =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | UNRESERVED, -1, 0);
    if (base == MAP_FAILED)
        return false;
    *arena = (struct arena){.base = base, .bytes = bytes};
    return true;
}

void arena_unmap(const struct arena *arena)
{
#if GAP > 0
    ASAN_UNPOISON_MEMORY_REGION(arena->base, arena->bytes);
#endif
    munmap(arena->base, arena->bytes);
}

void *arena_take(struct arena *arena, size_t count, size_t bytes)
{
    size_t size = (count * bytes + LINE - 1) / LINE * LINE;
    void *taken = arena->base ? arena->base + arena->taken : NULL;
    assert(!arena->base || arena->taken + size + GAP <= arena->bytes);
#if GAP > 0
    if (arena->base)
        ASAN_POISON_MEMORY_REGION(arena->base + arena->taken + count * bytes,
                                  size + GAP - count * bytes);
#endif
    arena->taken += size + GAP;
    return taken;
}
