/* SPDX-License-Identifier: MIT */
#ifndef USER_LIBRARY_PRINT_H
#define USER_LIBRARY_PRINT_H

#include <stdarg.h>
#include <stddef.h>

/*
 * Formats: %d %i %u %x %X %p %c %s %%, with l, ll or z, a width, `-` and `0`;
 * a precision for %s; `*` for either. What one call prints goes out in one
 * write, up to PRINT_BYTES; more, in pieces of that.
 *
 * The characters printed, or -1 when a write failed.
 */
#define PRINT_BYTES 512

int printf(const char *format, ...) __attribute__((format(__printf__, 1, 2)));
int fprintf(int descriptor, const char *format, ...) __attribute__((format(__printf__, 2, 3)));
int vfprintf(int descriptor, const char *format, va_list arguments)
    __attribute__((format(__printf__, 2, 0)));
/* Into memory, cut to `size` with its final 0; the characters that the whole takes. */
int snprintf(char *destination, size_t size, const char *format, ...)
    __attribute__((format(__printf__, 3, 4)));

/* Returns what a number of abi/errors.h means. */
const char *error_text(int error);

/* "program: what: why" to descriptor 2, where why is the text of last_error(). Gives 1, the exit
 * status of what failed. */
int complain(const char *program, const char *what);

/* "usage: text" to descriptor 2, and the end, with status 2. */
_Noreturn void usage(const char *text);

#endif
