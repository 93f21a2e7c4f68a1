/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_GROUP_LIMITS_H
#define SCHEDLAB_GROUP_LIMITS_H

#include "policy.h"

/*
 * Limits of groups over several CPUs: a quota in each period (Turner, Rao and Rao 2010, "CPU
 * bandwidth control for CFS").
 *
 * Each group has a pool, which is full when a period begins. Before a turn, a run queue takes from
 * the pool as much as the turn may last, and returns the unused rest. So time outside all pools is
 * being used now. Time that was not taken is lost when the period ends. A pool is one word, which
 * the CPUs change without a lock: the number of the period, and the time taken in it.
 */
struct group_pool {
    uint64_t word;
};
typedef struct group_pool SHARED_MEMORY group_pool_t;
typedef struct share_group SHARED_MEMORY share_group_t;

#define POOL_TAKEN_BITS 40 /* more than TASK_TIME_MAX */
#define POOL_TAKEN      ((1ull << POOL_TAKEN_BITS) - 1)
#define POOL_PERIODS    (1ull << (64 - POOL_TAKEN_BITS))

/* Returns the end of the period that contains `now`. */
POLICY_FUNCTION uint64_t period_end(const share_group_t *group, uint64_t now)
{
    return now - now % group->period + group->period;
}

/* Returns the pool's word at `now`: a new period starts with nothing taken. CPU clocks may
 * differ slightly, so a CPU still in the old period takes from the new one. */
POLICY_FUNCTION uint64_t pool_word(const share_group_t *group, uint64_t word, uint64_t now)
{
    uint64_t period = now / group->period % POOL_PERIODS;
    uint64_t ahead = (period - (word >> POOL_TAKEN_BITS)) % POOL_PERIODS;
    return ahead > 0 && ahead < POOL_PERIODS / 2 ? period << POOL_TAKEN_BITS : word;
}

/* Returns the nanoseconds that can be taken at `now`. */
POLICY_FUNCTION uint64_t pool_rest(const share_group_t *group, const group_pool_t *pool,
                                   uint64_t now)
{
    uint64_t taken = pool_word(group, pool->word, now) & POOL_TAKEN;
    return taken < group->quota ? group->quota - taken : 0;
}

/* Takes up to `ns`. Returns the amount. */
POLICY_FUNCTION uint64_t pool_take(const share_group_t *group, group_pool_t *pool, uint64_t now,
                                   uint64_t ns)
{
    for (uint32_t tries = (uint32_t)LOOP_START(0); tries < POLICY_CPUS_MAX && LOOP_GUARD; tries++) {
        uint64_t old = pool->word;
        uint64_t word = pool_word(group, old, now);
        uint64_t taken = word & POOL_TAKEN;
        uint64_t rest = taken < group->quota ? group->quota - taken : 0;
        uint64_t part = ns < rest ? ns : rest;
        if (__sync_val_compare_and_swap(&pool->word, old, word + part) == old)
            return part;
    }
    return 0;
}

/* Returns time that was taken at `since` to the pool, if that period has not ended. */
POLICY_FUNCTION void pool_give(const share_group_t *group, group_pool_t *pool, uint64_t since,
                               uint64_t ns)
{
    uint64_t period = since / group->period % POOL_PERIODS;
    for (uint32_t tries = (uint32_t)LOOP_START(0); tries < POLICY_CPUS_MAX && LOOP_GUARD; tries++) {
        uint64_t old = pool->word;
        uint64_t taken = old & POOL_TAKEN;
        uint64_t part = ns < taken ? ns : taken;
        if (old >> POOL_TAKEN_BITS != period ||
            __sync_val_compare_and_swap(&pool->word, old, old - part) == old)
            return;
    }
}

#endif
