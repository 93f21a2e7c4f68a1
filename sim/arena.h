/* SPDX-License-Identifier: MIT */
#ifndef SIM_ARENA_H
#define SIM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All memory of a machine: one zeroed range of addresses. Arrays are taken from the arena one after
 * the other, and never returned. Pages that are never written to use no memory.
 */
struct arena {
    unsigned char *base; /* null: nothing is mapped, and only sizes are counted */
    size_t bytes;        /* mapped */
    size_t taken;
};

/* Returns false if memory is short. */
bool arena_map(struct arena *arena, size_t bytes);
void arena_unmap(const struct arena *arena);

/* Returns an array of zeros that starts on a new cache line. The result is not null, even if the
 * array is empty, unless nothing is mapped. */
void *arena_take(struct arena *arena, size_t count, size_t bytes);

#endif
