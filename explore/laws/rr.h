/* SPDX-License-Identifier: MIT */

#include "explore/laws/exact_slices.h"
#include "explore/laws/first_come.h"

static void rr_pick_law(const run_queue_t *queue, const struct member *picked)
{
    if (!queue->scheduler->tunable[RR_TABLE_SCAN])
        first_come_first_served(queue, picked);
}

static const struct law law = {
    .of_pick = rr_pick_law,
    .of_tick = slices_are_exact,
    .ranks = true,
    .counts_ticks = true,
};
