/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_LIB_PRINT_H
#define KERNEL_LIB_PRINT_H

#include <stdarg.h>
#include <stddef.h>

/* The kernel's log, on the console. Knows %d %i %u %x %p %s %c %%, with l, ll, z, 0 and widths. */
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints these characters in one piece, separate from other CPUs' output. */
void print_characters(const char *text, size_t length);
/* Like print, without its lock: for a panic. */
void print_list(const char *format, va_list arguments);

/* Like snprintf: writes at most `size` bytes with the final 0; returns the full length. */
int format_text(char *buffer, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int format_text_list(char *buffer, size_t size, const char *format, va_list arguments);

#endif
