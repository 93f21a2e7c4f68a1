/* SPDX-License-Identifier: MIT */

#include "lib/print.h"

#include "device/console.h"
#include "sync/spinlock.h"

#define LINE_BYTES 256

/* Keeps the lines of several CPUs separate, those of the kernel and of programs. */
static struct spinlock print_lock = {.name = "print", .rank = LOCK_PRINT};

/* A line that exceeds the buffer loses its end. */
static size_t format_line(char *line, size_t size, const char *format, va_list arguments)
{
    int length = format_text_list(line, size, format, arguments);
    return length < (int)size ? (size_t)length : size - 1;
}

static void put_characters(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        console_put(text[i]);
}

void print_list(const char *format, va_list arguments)
{
    char line[LINE_BYTES];
    put_characters(line, format_line(line, sizeof(line), format, arguments));
}

void print_characters(const char *text, size_t length)
{
    spinlock_acquire(&print_lock);
    put_characters(text, length);
    spinlock_release(&print_lock);
}

void print(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    print_characters(line, format_line(line, sizeof(line), format, arguments));
    va_end(arguments);
}
