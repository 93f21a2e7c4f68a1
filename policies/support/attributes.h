/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_ATTRIBUTES_H
#define SCHEDLAB_ATTRIBUTES_H

/* The attributes that users set (enum attribute_kind), for all hosts. */

#include "abi/trace_format.h"
#include "policies/policy.h"

#define ATTRIBUTE_FUNCTION static inline __attribute__((always_inline, unused))

ATTRIBUTE_FUNCTION int64_t attribute_lowest(uint32_t kind)
{
    return kind == ATTRIBUTE_PRIORITY ? PRIORITY_HIGHEST : 1;
}

/* Of a kind that does not exist: less than its lowest, so that no value is allowed. */
ATTRIBUTE_FUNCTION int64_t attribute_highest(uint32_t kind)
{
    switch (kind) {
    case ATTRIBUTE_PRIORITY:
        return PRIORITY_LOWEST;
    case ATTRIBUTE_TICKETS:
        return TICKETS_MAX;
    case ATTRIBUTE_WEIGHT:
        return WEIGHT_MAX;
    }
    return 0;
}

ATTRIBUTE_FUNCTION bool attribute_allowed(uint32_t kind, int64_t value)
{
    return value >= attribute_lowest(kind) && value <= attribute_highest(kind);
}

/* The value is allowed. `holder` points to a task, or to what else has fields of these names. */
#define STORE_ATTRIBUTE(holder, kind, value)                                                       \
    do {                                                                                           \
        if ((kind) == ATTRIBUTE_PRIORITY)                                                          \
            (holder)->priority = (int32_t)(value);                                                 \
        else if ((kind) == ATTRIBUTE_TICKETS)                                                      \
            (holder)->tickets = (uint32_t)(value);                                                 \
        else                                                                                       \
            (holder)->weight = (uint32_t)(value);                                                  \
    } while (0)

#endif
