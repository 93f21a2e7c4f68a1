/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_GROUP_SHARES_H
#define SCHEDLAB_GROUP_SHARES_H

#include "nice_weights.h"
#include "policy.h"

/*
 * The weight of a task among tasks of other groups.
 *
 * Each group competes by its weight among its siblings while it has an active task, which waits or
 * runs. So a task's value is its group's weight times its part of the active weights in the group,
 * and so on up to the root. Sums of own weights are kept over all CPUs. The weights of groups
 * within others are computed on each use, because users may change groups at any time.
 *
 * A policy's scheduler's state begins with a group_sums.
 */
struct group_sums {
    uint64_t active[GROUPS_MAX]; /* of a group's own tasks; changed by atomic operations */
    uint64_t unit;               /* value among tasks of 1 unit of a group's weight */
};
typedef struct group_sums SHARED_MEMORY group_sums_t;

/* Lies in a task's state; zero for a task that is new. */
struct group_member {
    uint64_t active; /* its own weight; 0: it does not compete */
    uint32_t group;  /* where it competes, or competed last */
};
typedef struct group_member SHARED_MEMORY group_member_t;
typedef uint64_t SHARED_MEMORY group_total_t;

/* Where nice levels decide, a task of nice 0 counts as a group of the default weight. */
#define NICE_UNIT       GROUP_WEIGHT_DEFAULT /* per unit of a nice level's weight */
#define NICE_GROUP_UNIT NICE_WEIGHT_USUAL    /* per unit of a group's weight */

POLICY_INLINE group_sums_t *group_sums_of(const scheduler_t *scheduler)
{
    return STATE_OF(scheduler, struct group_sums);
}

/* Returns the number of groups that users have set; it only grows. */
POLICY_INLINE uint32_t group_count(const scheduler_t *scheduler)
{
    return scheduler->groups < GROUPS_MAX ? scheduler->groups : GROUPS_MAX;
}

POLICY_INLINE uint32_t group_parent(const scheduler_t *scheduler, uint32_t group)
{
    uint32_t parent = scheduler->group[group % GROUPS_MAX].parent;
    return parent < group ? parent : 0;
}

POLICY_INLINE uint64_t group_backing(const scheduler_t *scheduler, uint32_t group)
{
    return scheduler->group[group % GROUPS_MAX].weight * group_sums_of(scheduler)->unit;
}

POLICY_RARE_FUNCTION void group_leave(const scheduler_t *scheduler, group_member_t *member)
{
    group_sums_t *sums = group_sums_of(scheduler);
    __sync_fetch_and_add(&sums->active[member->group % GROUPS_MAX], -member->active);
    member->active = 0;
}

/* Makes the task compete in its group with this weight, wherever it competed before. */
POLICY_RARE_FUNCTION void group_join(const scheduler_t *scheduler, group_member_t *member,
                                     const task_t *task, uint64_t weight)
{
    group_sums_t *sums = group_sums_of(scheduler);
    group_leave(scheduler, member);
    member->active = weight;
    member->group = task->group < scheduler->groups ? task->group : 0;
    __sync_fetch_and_add(&sums->active[member->group % GROUPS_MAX], weight);
}

/* Computes the active weight in each group, including groups within it, from the leaves up.
 * `total` has room for GROUPS_MAX. */
POLICY_RARE_FUNCTION void group_survey(const scheduler_t *scheduler, group_total_t *total)
{
    uint32_t count = group_count(scheduler);
    for (uint32_t i = (uint32_t)LOOP_START(0); i < count && LOOP_GUARD; i++)
        total[i % GROUPS_MAX] = group_sums_of(scheduler)->active[i % GROUPS_MAX];
    for (uint32_t i = (uint32_t)LOOP_START(1); i < count && LOOP_GUARD; i++) {
        uint32_t group = count - i;
        if (total[group % GROUPS_MAX] > 0)
            total[group_parent(scheduler, group) % GROUPS_MAX] += group_backing(scheduler, group);
    }
}

/* Returns the member's value among all other tasks, as of the last survey: at least 1. */
POLICY_FUNCTION uint64_t group_value(const scheduler_t *scheduler, const group_member_t *member,
                                     const group_total_t *total)
{
    uint32_t group = member->group;
    uint64_t value = member->active;
    for (uint32_t i = (uint32_t)LOOP_START(0); group > 0 && i < GROUPS_MAX && LOOP_GUARD; i++) {
        uint64_t backing = group_backing(scheduler, group);
        uint64_t all = total[group % GROUPS_MAX];
        value = all > value ? value * backing / all : backing;
        group = group_parent(scheduler, group);
    }
    return value > 0 ? value : 1;
}

#endif
