/* SPDX-License-Identifier: MIT */

#include "explore/laws/exact_slices.h"

static uint64_t stride_period(const scheduler_t *scheduler)
{
    return scheduler->tick_ns;
}

static uint64_t *stride_run_time_word(const struct member *member, uint32_t number)
{
    return number == 0 ? &STATE_OF(&member->task, struct stride_task)->charged : NULL;
}

static const struct law law = {
    .of_tick = slices_are_exact,
    .counts_ticks = true,
    .period = stride_period,
    .run_time_word = stride_run_time_word,
};
