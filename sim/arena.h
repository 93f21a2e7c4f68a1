/* SPDX-License-Identifier: MIT */
#ifndef SIM_ARENA_H
#define SIM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All memory of a machine: one piece of address space, zeroed, from which arrays are
 * taken one after the other and never given back. Pages that nobody writes to take no
 * memory. It can be mapped again at the address where it was, in another program: so
 * what lies in it may point into it, and a copy of its bytes is a copy of the machine
 * (sim/checkpoint.c).
 */
struct arena {
    unsigned char *base; /* null: nothing is mapped, and it only counts what would be taken */
    size_t bytes;        /* mapped */
    size_t taken;
};

#define ARENA_PAGE 4096

/* At any address that is free. False: there is no memory. */
bool arena_map(struct arena *arena, size_t bytes);
/* At this address. False: something else lies there, or it is none of an arena. */
bool arena_map_at(struct arena *arena, uintptr_t address, size_t bytes);
void arena_unmap(const struct arena *arena);

/* An array of zeros, on a cache line of its own. Not null, even if it is empty, unless nothing is
 * mapped. */
void *arena_take(struct arena *arena, size_t count, size_t bytes);

#endif
