/* SPDX-License-Identifier: MIT */

static uint64_t eevdf_period(const scheduler_t *scheduler)
{
    return scheduler->tick_ns;
}

static uint64_t *eevdf_run_time_word(const struct member *member, uint32_t number)
{
    return number == 0 ? &STATE_OF(&member->task, struct eevdf_task)->member.charged : NULL;
}

static const struct law law = {
    .period = eevdf_period,
    .run_time_word = eevdf_run_time_word,
};
