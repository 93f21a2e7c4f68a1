/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_LIB_STRING_H
#define KERNEL_LIB_STRING_H

#include <stddef.h>

/* As in the C standard library. */
void *memcpy(void *destination, const void *source, size_t n);
void *memmove(void *destination, const void *source, size_t n);
void *memset(void *destination, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);

/* Copies at most size - 1 characters and a final 0. */
void text_copy(char *destination, const char *source, size_t size);

#endif
