/* SPDX-License-Identifier: MIT */

/* Tasks in the fast lane are served before all levels. If tasks age by passes, or faster when
 * others have stalled, level() does not return the present level (study_priority_level_now()
 * does), so the order is not checked. */
static uint64_t study_priority_place_of_level(const scheduler_t *scheduler, uint64_t level)
{
    bool unknown =
        scheduler->tunable[STUDY_AGING_BY_PASSES] || scheduler->tunable[STUDY_STALLED_AFTER];
    return unknown ? 0 : study_priority_rank(scheduler, (uint32_t)level);
}

static const struct law law = {.place_of_level = study_priority_place_of_level};
