/* SPDX-License-Identifier: MIT */

static uint64_t lottery_period(const scheduler_t *scheduler)
{
    return scheduler->tick_ns;
}

static const struct law law = {
    .period = lottery_period,
};
