/* SPDX-License-Identifier: MIT */

#include "sim/arena.h"

#include <assert.h>
#include <sys/mman.h>
#include <sys/random.h>

#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define GAP 64 /* between arrays, not to be touched */
#else
#define GAP 0
#endif

/*
 * Where arenas lie: programs, their heaps and libraries, and what sanitizers map, all
 * lie elsewhere on Linux with 47 bits of addresses or more. Which of the places is
 * drawn: so that it will be free in the program that maps it again. Nothing in a
 * machine goes by addresses, and no run depends on it.
 */
#define FIRST   0x200000000000u
#define END     0x500000000000u
#define SPACING 0x40000000u
#define TRIES   64
#define LINE    64

static bool lies_within(uintptr_t address, size_t bytes)
{
    return address >= FIRST && address < END && address % ARENA_PAGE == 0 && bytes <= END - address;
}

bool arena_map_at(struct arena *arena, uintptr_t address, size_t bytes)
{
    if (!lies_within(address, bytes) || bytes % ARENA_PAGE != 0)
        return false;
    void *wanted = (void *)address; /* NOLINT */
    void *base = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (base == MAP_FAILED)
        return false;
    *arena = (struct arena){.base = base, .bytes = bytes};
    if (base == wanted)
        return true;
    arena_unmap(arena); /* a kernel before Linux 4.17 does not know MAP_FIXED_NOREPLACE */
    return false;
}

bool arena_map(struct arena *arena, size_t bytes)
{
    bytes = (bytes + ARENA_PAGE - 1) / ARENA_PAGE * ARENA_PAGE;
    for (int i = 0; i < TRIES; i++) {
        uint64_t drawn = 0;
        if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
            return false;
        uintptr_t place = FIRST + drawn % ((END - FIRST) / SPACING) * SPACING;
        if (arena_map_at(arena, place, bytes))
            return true;
    }
    return false;
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
