/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_ENGINE_PROMISES_H
#define EXPLORE_ENGINE_PROMISES_H

/* What the policy promises, and how the tasks rank by it. */

#include "explore/engine/state.h"

/* What a policy promises, in explore/laws/NAME.h or NAME.law.h, as `law`. */
struct law {
    /* A rule that is broken ends in watch_broken(). The picked task, which is in the queue no more,
     * has the rank that it had. */
    void (*of_pick)(const run_queue_t *queue, const struct member *picked);
    void (*of_tick)(const run_queue_t *queue, const struct member *member,
                    enum tick_verdict verdict);
    /* Where the policy serves its levels in another order than it says: a level's place in that. */
    uint64_t (*place_of_level)(const scheduler_t *scheduler, uint64_t level);
    bool ranks; /* `rank` and `ticks` of members are counted */
    bool counts_ticks;
    /* What is assumed of the policy, so that states are one that differ in nothing else: all goes
     * on as before if all times are moved by a multiple of so many nanoseconds; and if a task's
     * run_time and words of its state, of which the function returns one after the other, then
     * null, are lessened by the same. */
    uint64_t (*period)(const scheduler_t *scheduler);
    uint64_t *(*run_time_word)(const struct member *member, uint32_t number);
};

#ifdef LAW
#include LAW
#else
static const struct law law = {0};
#endif

static void rank_as_last(struct member *member, const run_queue_t *queue, bool first)
{
    if (!law.ranks)
        return;
    member->rank = first ? 0 : queue->queued;
    for (uint32_t i = 0; first && i < setup.tasks; i++)
        machine.tasks[i].rank += &machine.tasks[i] != member && waits_in(&machine.tasks[i], queue);
}

static void rank_no_more(struct member *member, const run_queue_t *queue)
{
    for (uint32_t i = 0; law.ranks && i < setup.tasks; i++) {
        struct member *other = &machine.tasks[i];
        other->rank -= waits_in(other, queue) && other->rank > member->rank;
    }
    member->rank = 0;
}

/* Of levels, whatever the policy: the best one is served first, unless it may not run now. */
static void levels_in(const run_queue_t *queue, uint64_t *levels)
{
    for (uint32_t i = 0; i < setup.tasks; i++) {
        const struct member *member = &machine.tasks[i];
        levels[i] = waits_in(member, queue)
                        ? policy_level(&POLICY, &machine.scheduler, &member->task, machine.now)
                        : 0;
    }
}

static bool serves_before(uint64_t one, uint64_t other)
{
    if (law.place_of_level)
        return law.place_of_level(&machine.scheduler, one) <
               law.place_of_level(&machine.scheduler, other);
    return POLICY.level_order == LEVELS_LOWEST_FIRST ? one < other : one > other;
}

static void check_levels(const run_queue_t *queue, const struct member *picked,
                         const uint64_t *levels)
{
    uint64_t level = levels[picked - machine.tasks];
    for (uint32_t i = 0; i < setup.tasks; i++) {
        const struct member *other = &machine.tasks[i];
        if (may_be_picked(other, queue) && serves_before(levels[i], level))
            watch_broken("pick() returned pid %d of level %" PRIu64
                         " while pid %d of level %" PRIu64 " waits in the queue",
                         picked->task.pid, level, other->task.pid, levels[i]);
    }
}

#endif
