/* SPDX-License-Identifier: MIT */

/* Checks: no waiting task has less work left than the picked one. */
static void srpt_pick_law(const run_queue_t *queue, const struct member *picked)
{
    uint64_t left = srpt_left(&picked->task, picked->task.run_time);
    for (uint32_t i = 0; i < setup.tasks; i++) {
        const struct member *other = &machine.tasks[i];
        if (may_be_picked(other, queue) && srpt_left(&other->task, other->task.run_time) < left)
            watch_broken("pick() returned pid %d, although pid %d has less remaining work",
                         picked->task.pid, other->task.pid);
    }
}

static uint64_t srpt_period(const scheduler_t *scheduler)
{
    return scheduler->tick_ns;
}

static uint64_t *srpt_run_time_word(const struct member *member, uint32_t number)
{
    return number == 0 ? &STATE_OF(&member->task, struct srpt_task)->begun : NULL;
}

static const struct law law = {
    .of_pick = srpt_pick_law,
    .period = srpt_period,
    .run_time_word = srpt_run_time_word,
};
