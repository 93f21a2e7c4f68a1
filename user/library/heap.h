/* SPDX-License-Identifier: MIT */
#ifndef USER_LIBRARY_HEAP_H
#define USER_LIBRARY_HEAP_H

#include <stddef.h>

/* Returns memory for `bytes`, aligned to 16, not cleared, or null if memory is short. */
void *malloc(size_t bytes);
/* Returns the same, cleared, for `count` objects. */
void *calloc(size_t count, size_t bytes);
/* Frees memory of malloc() or calloc(); ignores null. */
void free(void *memory);

#endif
