/* SPDX-License-Identifier: MIT */
#ifndef USER_LIBRARY_HEAP_H
#define USER_LIBRARY_HEAP_H

#include <stddef.h>

/* Returns memory for `bytes`, aligned to 16, not cleared, or null if there is none. */
void *malloc(size_t bytes);
/* Returns the same, cleared, for `count` objects. */
void *calloc(size_t count, size_t bytes);
/* Gives back what malloc() or calloc() gave; null is left alone. */
void free(void *memory);

#endif
