/* SPDX-License-Identifier: MIT */
#ifndef SIM_ARENA_H
#define SIM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All memory of a machine: one piece of address space, zeroed, from which arrays are
 * taken one after the other and never given back. Pages that are never written to
 * take no memory.
 */
struct arena {
    unsigned char *base; /* null: nothing is mapped, and it only counts what would be taken */
    size_t bytes;        /* mapped */
    size_t taken;
};

/* Returns false if there is no memory. */
bool arena_map(struct arena *arena, size_t bytes);
void arena_unmap(const struct arena *arena);

/* Returns an array of zeros, on a cache line of its own. Not null, even if it is empty, unless
 * nothing is mapped. */
void *arena_take(struct arena *arena, size_t count, size_t bytes);

#endif
