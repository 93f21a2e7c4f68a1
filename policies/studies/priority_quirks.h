/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_PRIORITY_QUIRKS_H
#define SCHEDLAB_PRIORITY_QUIRKS_H

#include "policies/level_lists.h"
#include "policies/policy.h"

/*
 * Study 1's rules and proposals besides priorities and aging, for study-priority.c. A limit of 0
 * means none.
 */

/* Returns true for a task that keeps the default priority permanently. */
POLICY_FUNCTION bool is_above_pid_limit(const task_t *task, int64_t limit)
{
    return limit > 0 && task->pid > limit;
}

enum { PID_CRITICAL = 2 }; /* PIDs up to this are never ended */

/* `limit` of the run time is in nanoseconds. */
POLICY_FUNCTION bool must_end(const task_t *task, uint64_t limit)
{
    return limit > 0 && task->run_time > limit && task->pid > PID_CRITICAL;
}

/*
 * Returns true if the first task in some list waits for longer than `patience`, in nanoseconds.
 * `top` is the highest level, whose tasks cannot rise.
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
 * Priority by behaviour (8.1). After each period of running and sleeping, a task that hardly slept
 * is demoted by a level. A task that mostly slept rises, by two levels at most. Time in the queue
 * does not count: it reveals nothing about the task.
 */

enum { BEHAVIOUR_BIAS_MAX = 2 };

struct behaviour {
    uint64_t judged;     /* the task's run time at its last evaluation */
    uint64_t slept;      /* nanoseconds since then */
    uint64_t blocked_at; /* when it blocked; for a sleeping task */
    int32_t bias;        /* levels of demotion so far */
};
typedef struct behaviour SHARED_MEMORY behaviour_t;

/* Evaluates the task's behaviour. A period of 0 disables it. */
POLICY_FUNCTION void behaviour_judge(behaviour_t *state, const task_t *task, uint64_t period)
{
    uint64_t total = task->run_time - state->judged + state->slept;
    if (period == 0 || total < period)
        return;
    if (state->slept <= total / 10 && state->bias < BEHAVIOUR_BIAS_MAX)
        state->bias++;
    else if (state->slept > total / 2 && state->bias > -BEHAVIOUR_BIAS_MAX)
        state->bias--;
    state->judged = task->run_time;
    state->slept = 0;
}

#endif
