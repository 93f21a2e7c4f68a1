/* SPDX-License-Identifier: MIT */

/* With boosts, the policy counts intervals from time 0. */
static uint64_t mlfq_period(const scheduler_t *scheduler)
{
    return scheduler->tunable[FEEDBACK_BOOST] ? 0 : scheduler->tick_ns;
}

static uint64_t *mlfq_run_time_word(const struct member *member, uint32_t number)
{
    return number == 0 ? &STATE_OF(&member->task, struct mlfq_task)->charged_run_time : NULL;
}

static const struct law law = {
    .period = mlfq_period,
    .run_time_word = mlfq_run_time_word,
};
