/* SPDX-License-Identifier: MIT */

static uint64_t cfs_period(const scheduler_t *scheduler)
{
    return scheduler->tick_ns;
}

static uint64_t *cfs_run_time_word(const struct member *member, uint32_t number)
{
    cfs_task_t *state = cfs_task_of(&member->task);
    uint64_t *const words[] = {&state->charged, &state->began, NULL};
    return words[number];
}

static const struct law law = {
    .period = cfs_period,
    .run_time_word = cfs_run_time_word,
};
