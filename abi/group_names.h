/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_ABI_GROUP_NAMES_H
#define SCHEDLAB_ABI_GROUP_NAMES_H

/* The names of a group's fields in files and commands. */

#include "abi/attribute_names.h"

static const char *const group_field_names[] = {
    [GROUP_PARENT] = "parent",
    [GROUP_WEIGHT] = "weight",
    [GROUP_QUOTA] = "quota",
    [GROUP_PERIOD] = "period",
};

#define GROUP_FIELDS (sizeof(group_field_names) / sizeof(group_field_names[0])) /* 0 is none */

/* Returns the field, or 0 if there is none of that name. */
static inline uint32_t group_field_named(const char *name)
{
    for (uint32_t field = 1; field < GROUP_FIELDS; field++) {
        if (attribute_name_is(group_field_names[field], name))
            return field;
    }
    return 0;
}

#endif
