/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_LIB_STRING_H
#define KERNEL_LIB_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in the C standard library. */
void *memcpy(void *destination, const void *source, size_t n);
void *memmove(void *destination, const void *source, size_t n);
void *memset(void *destination, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);

/* Returns true if the text contains this character. */
bool text_has(const char *text, char character);
/* Reads the whole of `text` as a decimal number, optionally with a minus sign. Returns false,
 * with *number unchanged, if it is not a number, or exceeds 64 bits. */
bool text_to_number(const char *text, int64_t *number);
/* Copies at most size - 1 characters and a final 0. */
void text_copy(char *destination, const char *source, size_t size);

#endif
