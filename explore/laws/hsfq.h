/* SPDX-License-Identifier: MIT */

/* A group with a quota starts a new period whenever the time is a multiple of the period. */
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

static bool hsfq_is_held(const run_queue_t *queue, uint32_t group)
{
    while (group > 0 && hsfq_group_of(queue, group)->until <= queue->now)
        group = hsfq_group_of(queue, group)->parent;
    return hsfq_group_of(queue, group)->until > queue->now;
}

/* Returns true if task `one` must be served before task `other`: at each group from the root
 * down, the child with the least start tag is served. So the tags of the two groups where the
 * paths of the tasks part are compared. A parent has a lower number than its children. */
static bool hsfq_comes_before(const run_queue_t *queue, const struct member *one,
                              const struct member *other)
{
    const struct member *tasks[] = {one, other};
    uint32_t group[2];
    uint64_t tag[2];
    for (int i = 0; i < 2; i++) {
        group[i] = hsfq_task_of(&tasks[i]->task)->group;
        tag[i] = hsfq_start_of(tasks[i]);
    }
    while (group[0] != group[1]) {
        const int below = group[0] < group[1];
        tag[below] = hsfq_group_of(queue, group[below])->start;
        group[below] = hsfq_group_of(queue, group[below])->parent;
    }
    return hsfq_before(tag[0], tag[1]);
}

/* Checks: the policy picks no task of a group that has used up its quota. */
static void hsfq_least_served_first(const run_queue_t *queue, const struct member *picked)
{
    const uint32_t group = hsfq_task_of(&picked->task)->group;
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
        if (!hsfq_is_held(queue, of) && hsfq_comes_before(queue, other, picked))
            watch_broken("pick() returned pid %d of group %u, although pid %d of group %u has had "
                         "less for its weight",
                         picked->task.pid, group, other->task.pid, of);
    }
}

static const struct law law = {
    .of_pick = hsfq_least_served_first,
    .period = hsfq_period,
    .run_time_word = hsfq_run_time_word,
};
