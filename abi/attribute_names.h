/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_ABI_ATTRIBUTE_NAMES_H
#define SCHEDLAB_ABI_ATTRIBUTE_NAMES_H

/* The names of attributes in files and commands. */

#include <stdbool.h>

#include "abi/trace_format.h"

static const char *const attribute_names[] = {
    [ATTRIBUTE_PRIORITY] = "priority",   [ATTRIBUTE_TICKETS] = "tickets",
    [ATTRIBUTE_WEIGHT] = "weight",       [ATTRIBUTE_NICE] = "nice",
    [ATTRIBUTE_SLICE] = "slice",         [ATTRIBUTE_RUNTIME] = "runtime",
    [ATTRIBUTE_DEADLINE] = "deadline",   [ATTRIBUTE_PERIOD] = "period",
    [ATTRIBUTE_TASKGROUP] = "taskgroup",
};

#define ATTRIBUTE_KINDS (sizeof(attribute_names) / sizeof(attribute_names[0])) /* 0 is none */

static inline bool attribute_name_is(const char *name, const char *other)
{
    while (*name && *name == *other) {
        name++;
        other++;
    }
    return *name == *other;
}

/* Returns the kind, or 0 if there is none of that name. */
static inline uint32_t attribute_named(const char *name)
{
    for (uint32_t kind = 1; kind < ATTRIBUTE_KINDS; kind++) {
        if (attribute_name_is(attribute_names[kind], name))
            return kind;
    }
    return 0;
}

#endif
