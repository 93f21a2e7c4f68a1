/* SPDX-License-Identifier: MIT */
#ifndef USER_LIBRARY_PRINT_H
#define USER_LIBRARY_PRINT_H

#include <stdarg.h>
#include <stddef.h>

/*
 * Formats: %d %i %u %x %X %p %c %s %%, with l, ll or z, a width, `-` and `0`; a
 * precision for %s; `*` for either. The output of one call is one write, up to
 * PRINT_BYTES; longer output is split into pieces of that size.
 *
 * Returns the characters printed, or -1 when a write failed.
 */
#define PRINT_BYTES 512

int printf(const char *format, ...) __attribute__((format(__printf__, 1, 2)));
int fprintf(int descriptor, const char *format, ...) __attribute__((format(__printf__, 2, 3)));
int vfprintf(int descriptor, const char *format, va_list arguments)
    __attribute__((format(__printf__, 2, 0)));
/* Prints into memory, truncated to `size` with its final 0. Returns the length of the whole
 * text. */
int snprintf(char *destination, size_t size, const char *format, ...)
    __attribute__((format(__printf__, 3, 4)));

/* Returns the text for a number of abi/errors.h. */
const char *error_text(int error);

/* Prints "program: what: why" to descriptor 2, where why is the text of last_error(). Returns 1,
 * the exit status of failure. */
int complain(const char *program, const char *what);

/* Prints "usage: text" to descriptor 2, and exits with status 2. */
_Noreturn void usage(const char *text);

#endif
