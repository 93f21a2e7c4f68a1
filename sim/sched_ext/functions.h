/* SPDX-License-Identifier: MIT */
#ifndef SIM_SCHED_EXT_FUNCTIONS_H
#define SIM_SCHED_EXT_FUNCTIONS_H

#include "sim/sched_ext/state.h"

/* The kernel's functions that programs call (kfuncs): function_NAME. `arguments` are registers 1 to
 * 5. */

#define DECLARE_FUNCTION(name, number, first, last) host_function function_##name;
KERNEL_FUNCTIONS(DECLARE_FUNCTION)
#undef DECLARE_FUNCTION

#define FUNCTION(name) uint64_t function_##name(struct guest *guest, const uint64_t *arguments)

/* A function with the same behaviour as another one. */
#define SAME_FUNCTION(name, other)                                                                 \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        return function_##other(guest, arguments);                                                 \
    }

/* A function that always returns the same. */
#define CONSTANT_FUNCTION(name, value)                                                             \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        (void)guest;                                                                               \
        (void)arguments;                                                                           \
        return (value);                                                                            \
    }

/* A function that returns its first argument. */
#define IDENTITY_FUNCTION(name)                                                                    \
    FUNCTION(name)                                                                                 \
    {                                                                                              \
        (void)guest;                                                                               \
        return arguments[0];                                                                       \
    }

#endif
