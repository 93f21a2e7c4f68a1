/* SPDX-License-Identifier: MIT */

static uint64_t edf_period(const scheduler_t *scheduler)
{
    return scheduler->tick_ns;
}

static uint64_t *edf_run_time_word(const struct member *member, uint32_t number)
{
    return number == 0 ? &STATE_OF(&member->task, struct edf_task)->charged : NULL;
}

static const struct law law = {
    .period = edf_period,
    .run_time_word = edf_run_time_word,
};
