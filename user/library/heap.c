/* SPDX-License-Identifier: MIT */

/*
 * First fit in a list of free pieces in the order of their addresses; neighbours are merged when
 * they are freed (Knuth, The Art of Computer Programming 1, 2.5, algorithms A and B).
 */

#include "user/library/heap.h"

#include <stdint.h>

#include "user/library/system.h"
#include "user/library/text.h"

/* Before each piece, free or in use. */
struct piece {
    size_t units; /* of sizeof(struct piece), including itself */
    struct piece *next;
};

_Static_assert(sizeof(struct piece) == 16, "pieces keep memory aligned to 16");

#define UNIT       sizeof(struct piece)
#define GROW_UNITS ((size_t)16384 / UNIT)

static struct piece *first_free;

/* Joins `piece` with the next one if they are adjacent. */
static void join_with_next(struct piece *piece)
{
    struct piece *next = piece->next;
    if (next && piece + piece->units == next) {
        piece->units += next->units;
        piece->next = next->next;
    }
}

static void insert(struct piece *piece)
{
    struct piece *before = NULL;
    struct piece *after = first_free;
    while (after && after < piece) {
        before = after;
        after = after->next;
    }
    piece->next = after;
    if (before)
        before->next = piece;
    else
        first_free = piece;
    join_with_next(piece);
    if (before)
        join_with_next(before);
}

/* Takes `units` off the end of `piece`, which may stay in the list with the rest. */
static struct piece *take(struct piece **link, size_t units)
{
    struct piece *piece = *link;
    if (piece->units == units) {
        *link = piece->next;
        return piece;
    }
    piece->units -= units;
    piece += piece->units;
    piece->units = units;
    return piece;
}

static struct piece *find(size_t units)
{
    for (struct piece **link = &first_free; *link; link = &(*link)->next) {
        if ((*link)->units >= units)
            return take(link, units);
    }
    return NULL;
}

static bool grow(size_t units)
{
    if (units < GROW_UNITS)
        units = GROW_UNITS;
    char *end = sbrk(0);
    size_t gap = -(uintptr_t)end & (UNIT - 1);
    if (sbrk((int64_t)(units * UNIT + gap)) == SYSTEM_FAILED)
        return false;
    struct piece *piece = (struct piece *)(void *)(end + gap);
    piece->units = units;
    insert(piece);
    return true;
}

void *malloc(size_t bytes)
{
    if (bytes > (size_t)1 << 40)
        return NULL;
    size_t units = (bytes + UNIT - 1) / UNIT + 1;
    struct piece *piece = find(units);
    if (!piece && grow(units))
        piece = find(units);
    return piece ? piece + 1 : NULL;
}

void *calloc(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        return NULL;
    void *memory = malloc(total);
    if (memory)
        memset(memory, 0, total);
    return memory;
}

void free(void *memory)
{
    if (memory)
        insert((struct piece *)memory - 1);
}
