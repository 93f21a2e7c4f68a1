/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_ATTRIBUTES_H
#define SCHEDLAB_ATTRIBUTES_H

/* The attributes that users set (enum attribute_kind), for all hosts. */

#include "abi/trace_format.h"
#include "policies/policy.h"

#define ATTRIBUTE_FUNCTION static inline __attribute__((always_inline, unused))

/* For each attribute: its kind, its field in struct task, the field's type, its lowest, initial
 * and highest value, and whether a child inherits it. */
#define ATTRIBUTES(EACH)                                                                           \
    EACH(PRIORITY, priority, int32_t, PRIORITY_HIGHEST, PRIORITY_DEFAULT, PRIORITY_LOWEST, true)   \
    EACH(TICKETS, tickets, uint32_t, 1, TICKETS_DEFAULT, TICKETS_MAX, true)                        \
    EACH(WEIGHT, weight, uint32_t, 1, WEIGHT_DEFAULT, WEIGHT_MAX, true)                            \
    EACH(NICE, nice, int32_t, NICE_FIRST, NICE_DEFAULT, NICE_LAST, true)                           \
    EACH(SLICE, slice, uint64_t, 0, 0, TASK_TIME_MAX, true)                                        \
    EACH(RUNTIME, runtime, uint64_t, 0, 0, TASK_TIME_MAX, false)                                   \
    EACH(DEADLINE, deadline, uint64_t, 0, 0, TASK_TIME_MAX, false)                                 \
    EACH(PERIOD, period, uint64_t, 0, 0, TASK_TIME_MAX, false)                                     \
    EACH(TASKGROUP, group, uint32_t, 0, 0, GROUPS_MAX - 1, true)

ATTRIBUTE_FUNCTION int64_t attribute_lowest(uint32_t kind)
{
    switch (kind) {
#define LOWEST(kind, field, type, lowest, first, highest, inherited)                               \
    case ATTRIBUTE_##kind:                                                                         \
        return lowest;
        ATTRIBUTES(LOWEST)
#undef LOWEST
    }
    return 1;
}

/* Returns, for an unknown kind, less than its lowest, so that no value is allowed. */
ATTRIBUTE_FUNCTION int64_t attribute_highest(uint32_t kind)
{
    switch (kind) {
#define HIGHEST(kind, field, type, lowest, first, highest, inherited)                              \
    case ATTRIBUTE_##kind:                                                                         \
        return highest;
        ATTRIBUTES(HIGHEST)
#undef HIGHEST
    }
    return 0;
}

ATTRIBUTE_FUNCTION bool attribute_allowed(uint32_t kind, int64_t value)
{
    return value >= attribute_lowest(kind) && value <= attribute_highest(kind);
}

/* A holder of attributes is a task, or any structure with fields of the same names. */

#define STORE_ONE_ATTRIBUTE(kind_, field, type, lowest, first, highest, inherited)                 \
    case ATTRIBUTE_##kind_:                                                                        \
        stored_->field = (type)stored_value_;                                                      \
        break;

/* The value must be allowed. */
#define STORE_ATTRIBUTE(holder, kind, value)                                                       \
    do {                                                                                           \
        __typeof__(holder) stored_ = (holder);                                                     \
        int64_t stored_value_ = (int64_t)(value);                                                  \
        switch (kind) {                                                                            \
            ATTRIBUTES(STORE_ONE_ATTRIBUTE)                                                        \
        }                                                                                          \
    } while (0)

#define SET_FIRST_ATTRIBUTE(kind, field, type, lowest, first, highest, inherited)                  \
    set_->field = (type)(first);

/* Sets the initial values. */
#define SET_FIRST_ATTRIBUTES(holder)                                                               \
    do {                                                                                           \
        __typeof__(holder) set_ = (holder);                                                        \
        ATTRIBUTES(SET_FIRST_ATTRIBUTE)                                                            \
    } while (0)

#define INHERIT_ATTRIBUTE(kind, field, type, lowest, first, highest, inherited)                    \
    child_->field = (inherited) ? parent_->field : (type)(first);

/* Copies the attributes that a child inherits. */
#define INHERIT_ATTRIBUTES(child, parent)                                                          \
    do {                                                                                           \
        __typeof__(child) child_ = (child);                                                        \
        __typeof__(parent) parent_ = (parent);                                                     \
        ATTRIBUTES(INHERIT_ATTRIBUTE)                                                              \
    } while (0)

#define COPY_ATTRIBUTE(kind, field, type, lowest, first, highest, inherited)                       \
    to_->field = from_->field;

#define COPY_ATTRIBUTES(to, from)                                                                  \
    do {                                                                                           \
        __typeof__(to) to_ = (to);                                                                 \
        __typeof__(from) from_ = (from);                                                           \
        ATTRIBUTES(COPY_ATTRIBUTE)                                                                 \
    } while (0)

#define LOAD_ONE_ATTRIBUTE(kind, field, type, lowest, first, highest, inherited)                   \
    case ATTRIBUTE_##kind:                                                                         \
        return (int64_t)task->field;

/* The kind exists. */
ATTRIBUTE_FUNCTION int64_t attribute_of(const task_t *task, uint32_t kind)
{
    switch (kind) {
        ATTRIBUTES(LOAD_ONE_ATTRIBUTE)
    }
    return 0;
}

#endif
