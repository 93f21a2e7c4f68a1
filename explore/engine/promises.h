/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_ENGINE_PROMISES_H
#define EXPLORE_ENGINE_PROMISES_H

/* Promises of the policy about which task it picks, and how the engine checks
 * them. */

#include "explore/engine/state.h"

/* What a policy promises, as explore/laws/NAME.h or NAME.law.h defines it in `law`. */
struct law {
    /* Checks the promise for a picked task, and calls watch_broken() if it is broken. The task
     * has left the queue, and still has its former rank. */
    void (*of_pick)(const run_queue_t *queue, const struct member *picked);
    void (*of_tick)(const run_queue_t *queue, const struct member *member,
                    enum tick_verdict verdict);
    /* If the policy serves levels in another order than it declares: returns a level's position
     * in that order. */
    uint64_t (*place_of_level)(const scheduler_t *scheduler, uint64_t level);
    bool ranks; /* `rank` and `ticks` of struct member are maintained */
    bool counts_ticks;
    /* Declares which states are equivalent for the policy, so that the search visits only one of
     * them. It decides the same if all times move by a multiple of the returned number of
     * nanoseconds. */
    uint64_t (*period)(const scheduler_t *scheduler);
    uint64_t *(*run_time_word)(const struct member *member, uint32_t number);
    /* The policy also decides the same if a task's run_time and some words of its state are reduced
     * by the same amount. Returns these words for `number` 0, 1, ... and then null. */
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

/* Checks, for a policy with levels: the picked task has the best level of all that may run now. */
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
