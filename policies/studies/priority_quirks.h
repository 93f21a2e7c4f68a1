/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_PRIORITY_QUIRKS_H
#define SCHEDLAB_PRIORITY_QUIRKS_H

#include "policies/level_lists.h"
#include "policies/policy.h"

/*
 * What study 1 does and proposes besides priorities and aging, for study-priority.c.
 * Limits of 0 are none.
 */

/* Such a task has the default priority for good. */
POLICY_FUNCTION bool is_above_pid_limit(const task_t *task, int64_t limit)
{
    return limit > 0 && task->pid > limit;
}

/* `limit` in nanoseconds. Such a task is ended. */
POLICY_FUNCTION bool has_run_for_longer(const task_t *task, uint64_t limit)
{
    return limit > 0 && task->run_time > limit;
}

/*
 * A queue has stalled while the first in some line waits for longer than `patience`,
 * in nanoseconds. At `top` is the highest level, whose tasks cannot rise.
 */
POLICY_FUNCTION bool has_stalled(const level_lists_t *lists, uint32_t top, uint64_t now,
                                 uint64_t patience)
{
    for (uint32_t rank = LOOP_START(0); rank < RANKS_MAX && LOOP_GUARD; rank++) {
        const task_t *task = lists->list[rank].first;
        if (task && rank != top && now - task->queued_since > patience)
            return true;
    }
    return false;
}

/*
 * Priority by behaviour (8.1): after each period of running and sleeping, a task that
 * hardly slept sinks by a level and one that mostly slept rises, by two levels at most. Time in the
 * queue does not count: it says nothing of what the task wants.
 */

enum { BEHAVIOUR_BIAS_MAX = 2 };

struct behaviour {
    uint64_t judged;     /* the task's run time when it was judged last */
    uint64_t slept;      /* nanoseconds since then */
    uint64_t blocked_at; /* the time; for a task that sleeps */
    int32_t bias;        /* levels by which the task has sunk */
};
typedef struct behaviour SHARED_MEMORY behaviour_t;

/* A period of 0: no task is judged. */
POLICY_FUNCTION void behaviour_judge(behaviour_t *own, const task_t *task, uint64_t period)
{
    uint64_t total = task->run_time - own->judged + own->slept;
    if (period == 0 || total < period)
        return;
    if (own->slept <= total / 10 && own->bias < BEHAVIOUR_BIAS_MAX)
        own->bias++;
    else if (own->slept > total / 2 && own->bias > -BEHAVIOUR_BIAS_MAX)
        own->bias--;
    own->judged = task->run_time;
    own->slept = 0;
}

#endif
