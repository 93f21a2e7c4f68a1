/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_ROUNDS_H
#define SCHEDLAB_ROUNDS_H

/* The longest wait of a task, from the rounds that its policy declares. */

#include <string.h>

#include "policies/nice_weights.h"
#include "policies/registry.h"
#include "policies/support/hooks.h"

#define NO_LIMIT UINT64_MAX

/* Returns a task's share, in units that are only comparable between tasks. */
static inline uint64_t round_share(const struct policy *policy, const scheduler_t *scheduler,
                                   const task_t *task)
{
    switch (policy_shares_by(policy, scheduler)) {
    case SHARES_BY_TICKETS:
    case SHARES_BY_CURRENCIES:
        return policy_tickets(policy, scheduler, task);
    case SHARES_BY_WEIGHT:
        return task->weight;
    case SHARES_BY_NICE:
    case SHARES_BY_GROUPS:
        return nice_weight(task->nice);
    default:
        return 1;
    }
}

/* Returns the nanoseconds that `other` runs in a round where `task` has one turn, or NO_LIMIT. */
static inline uint64_t round_part(const struct policy *policy, const scheduler_t *scheduler,
                                  const task_t *task, const task_t *other)
{
    uint64_t ticks = policy->time_slice(scheduler, other);
    uint64_t base = round_share(policy, scheduler, task);
    uint64_t turns = (round_share(policy, scheduler, other) + base - 1) / (base > 0 ? base : 1);
    return ticks > UINT32_MAX ? NO_LIMIT : ticks * scheduler->tick_ns * (turns > 0 ? turns : 1);
}

/* Returns the longest wait of a task, in nanoseconds, if a round lasts for `round`; NO_LIMIT if
 * the task may starve. Where tasks wait for a boost, rounds begin after it. */
static inline uint64_t longest_wait(const struct policy *policy, const scheduler_t *scheduler,
                                    uint64_t round)
{
    uint64_t boost = 0;
    if (policy->rounds == 0 || round > NO_LIMIT / 2 / policy->rounds || scheduler->groups > 1)
        return NO_LIMIT;
    if (policy->boost) {
        uint32_t place = tunable_find(policy, policy->boost, strlen(policy->boost));
        boost = (uint64_t)scheduler->tunable[place] * scheduler->tick_ns;
        if (boost == 0)
            return NO_LIMIT;
    }
    return boost + policy->rounds * round + 2 * scheduler->tick_ns;
}

#endif
