/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_GROUPS_H
#define SCHEDLAB_GROUPS_H

/* Users' settings of groups of tasks (enum group_field), for all hosts. */

#include "abi/group_names.h"
#include "policies/policy.h"

#define GROUP_FUNCTION static inline __attribute__((unused))

static const char group_ranges[] =
    "as parent a lower number; as weight 1 to 10000; as quota 0, which is no limit, or 1ms to "
    "1000s; as period 1ms to 1s; group 0, the root, has no parent and no weight";

/* The root has no parent and no siblings: it may only have a limit. */
GROUP_FUNCTION bool group_value_allowed(uint64_t group, uint64_t field, int64_t value)
{
    bool time = value >= GROUP_TIME_LEAST;
    if (group >= GROUPS_MAX)
        return false;
    switch (field) {
    case GROUP_PARENT:
        return value >= 0 && (uint64_t)value < group;
    case GROUP_WEIGHT:
        return group > 0 && value >= 1 && value <= GROUP_WEIGHT_MAX;
    case GROUP_QUOTA:
        return value == 0 || (time && value <= TASK_TIME_MAX);
    case GROUP_PERIOD:
        return time && value <= GROUP_PERIOD_MOST;
    }
    return false;
}

/* Also creates the groups of lower numbers that were not set, as children of the root. */
GROUP_FUNCTION void group_define(scheduler_t *scheduler, uint32_t group)
{
    for (uint32_t i = (uint32_t)LOOP_START(scheduler->groups); i <= group && LOOP_GUARD; i++) {
        struct share_group SHARED_MEMORY *group_state = &scheduler->group[i];
        group_state->parent = 0;
        group_state->weight = GROUP_WEIGHT_DEFAULT;
        group_state->quota = 0;
        group_state->period = GROUP_PERIOD_DEFAULT;
    }
    if (scheduler->groups <= group)
        scheduler->groups = group + 1;
}

/* The value must be allowed. */
GROUP_FUNCTION void group_set(scheduler_t *scheduler, uint32_t group, enum group_field field,
                              int64_t value)
{
    group_define(scheduler, group);
    struct share_group SHARED_MEMORY *group_state = &scheduler->group[group];
    switch (field) {
    case GROUP_PARENT:
        group_state->parent = (uint32_t)value;
        break;
    case GROUP_WEIGHT:
        group_state->weight = (uint32_t)value;
        break;
    case GROUP_QUOTA:
        group_state->quota = (uint64_t)value;
        break;
    case GROUP_PERIOD:
        group_state->period = (uint64_t)value;
        break;
    }
}

#endif
