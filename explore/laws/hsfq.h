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

static uint64_t hsfq_start_of(const struct member *member)
{
    return hsfq_task_of(&member->task)->start;
}

/* Of groups: from the root down, the child with the least start tag is served of those that wait;
 * and none of a group whose quota is used up. There are two groups, so a way down has two steps at
 * most. */
static void hsfq_least_served_first(const run_queue_t *queue, const struct member *picked)
{
    const uint32_t group = hsfq_task_of(&picked->task)->group;
    const hsfq_group_t *below = hsfq_group_of(queue, 1);
    if (queue->scheduler->ending)
        return;
    if (hsfq_group_of(queue, group)->until > queue->now)
        watch_broken("pick() returned pid %d of group %u, whose quota is used up", picked->task.pid,
                     group);
    for (uint32_t i = 0; i < setup.tasks; i++) {
        const struct member *other = &machine.tasks[i];
        if (!may_be_picked(other, queue))
            continue;
        const uint32_t of = hsfq_task_of(&other->task)->group;
        if (hsfq_group_of(queue, of)->until > queue->now)
            continue;
        const uint64_t tag = of == group || of == 0 ? hsfq_start_of(other) : below->start;
        const uint64_t own = of == group || group == 0 ? hsfq_start_of(picked) : below->start;
        if (hsfq_before(tag, own))
            watch_broken("pick() returned pid %d of group %u, though pid %d of group %u has had "
                         "less for its weight",
                         picked->task.pid, group, other->task.pid, of);
    }
}

static const struct law law = {
    .of_pick = hsfq_least_served_first,
    .period = hsfq_period,
    .run_time_word = hsfq_run_time_word,
};
