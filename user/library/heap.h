/* SPDX-License-Identifier: MIT */
#ifndef USER_LIBRARY_HEAP_H
#define USER_LIBRARY_HEAP_H

#include <stddef.h>

/* Memory for `bytes`, aligned to 16, not cleared; null: there is none. */
void *malloc(size_t bytes);
/* The same, cleared, for `count` objects. */
void *calloc(size_t count, size_t bytes);
/* Gives back what malloc() or calloc() gave; null is left alone. */
void free(void *memory);

#endif
