/* SPDX-License-Identifier: MIT */

#include "lib/print.h"

#include "device/console.h"
#include "sync/spinlock.h"

/* Keeps the lines of several CPUs apart. */
static struct spinlock print_lock = {.name = "print", .rank = LOCK_PRINT};

void print_list(const char *format, va_list arguments)
{
    char line[256];
    int length = format_text_list(line, sizeof(line), format, arguments);
    if (length > (int)sizeof(line) - 1)
        length = (int)sizeof(line) - 1;
    for (int i = 0; i < length; i++)
        console_put(line[i]);
}

void print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    spinlock_acquire(&print_lock);
    print_list(format, arguments);
    spinlock_release(&print_lock);
    va_end(arguments);
}
