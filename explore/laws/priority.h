/* SPDX-License-Identifier: MIT */

/* The policy raises tasks whenever the time is a multiple of its interval. */
static uint64_t priority_period(const scheduler_t *scheduler)
{
    uint64_t interval = (uint64_t)scheduler->tunable[PRIORITY_AGING_INTERVAL];
    return (interval ? interval : 1) * scheduler->tick_ns;
}

static const struct law law = {
    .period = priority_period,
};
