/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_LIB_PANIC_H
#define KERNEL_LIB_PANIC_H

/* Prints the message and a backtrace, stops all CPUs, ends the machine with a failure status. */
_Noreturn void panic(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An invariant of the kernel itself. Never for errors that a user or a device may cause. */
#define kernel_assert(condition)                                                                   \
    do {                                                                                           \
        if (!(condition))                                                                          \
            panic("%s:%d: assertion failed: %s", __FILE__, __LINE__, #condition);                  \
    } while (0)

#endif
