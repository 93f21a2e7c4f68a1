/* SPDX-License-Identifier: MIT */

/* A limited group's period begins whenever the time is a multiple of it. */
static uint64_t hsfq_period(const scheduler_t *scheduler)
{
    (void)scheduler;
    return GROUP_PERIOD_DEFAULT;
}

static uint64_t *hsfq_run_time_word(const struct member *member, uint32_t number)
{
    return number == 0 ? &STATE_OF(&member->task, struct hsfq_task)->charged : NULL;
}

static const struct law law = {
    .period = hsfq_period,
    .run_time_word = hsfq_run_time_word,
};
