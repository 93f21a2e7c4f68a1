/* SPDX-License-Identifier: MIT */

#include "explore/laws/first_come.h"

static uint64_t planted_period(const scheduler_t *scheduler)
{
    return scheduler->tick_ns;
}

static const struct law law = {
    .of_pick = first_come_first_served,
    .ranks = true,
    .period = planted_period,
};
