/* SPDX-License-Identifier: MIT */

static uint64_t wrr_period(const scheduler_t *scheduler)
{
    return scheduler->tick_ns;
}

static uint64_t *wrr_run_time_word(const struct member *member, uint32_t number)
{
    return number == 0 ? &STATE_OF(&member->task, struct wrr_task)->charged_run_time : NULL;
}

static const struct law law = {
    .period = wrr_period,
    .run_time_word = wrr_run_time_word,
};
