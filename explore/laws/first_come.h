/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_FIRST_COME_H
#define EXPLORE_FIRST_COME_H

/* Checks: of the tasks at a level, the policy picks the task that was queued first. */
static void first_come_first_served(const run_queue_t *queue, const struct member *picked)
{
    for (uint32_t i = 0; i < setup.tasks; i++) {
        const struct member *other = &machine.tasks[i];
        if (may_be_picked(other, queue) && other->task.level == picked->task.level &&
            other->rank < picked->rank)
            watch_broken("pick() returned pid %d, although pid %d came first", picked->task.pid,
                         other->task.pid);
    }
}

#endif
