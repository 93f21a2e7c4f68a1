/* SPDX-License-Identifier: MIT */
#ifndef USER_LIBRARY_TEXT_H
#define USER_LIBRARY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in the C standard. */
void *memset(void *destination, int byte, size_t n);
void *memcpy(void *destination, const void *source, size_t n);
void *memmove(void *destination, const void *source, size_t n);
int memcmp(const void *left, const void *right, size_t n);
size_t strlen(const char *text);
int strcmp(const char *left, const char *right);
int strncmp(const char *left, const char *right, size_t n);
char *strchr(const char *text, int c);

/* Copies as much as fits in `size` bytes with a final 0. Returns false if the text was
 * truncated. */
bool text_copy(char *destination, const char *source, size_t size);

/* Reads the whole of `text` as a decimal or (0x) hexadecimal number. Returns false if it is not
 * one. */
bool text_to_number(const char *text, int64_t *number);

/*
 * Splits `text`, in place, at blanks; '…' and "…" keep theirs. Fills `words` and ends it with null.
 * Returns the number of words, or -1 if there are more than `capacity` - 1, or a quote never ends.
 */
int text_split(char *text, char *words[], int capacity);

#endif
