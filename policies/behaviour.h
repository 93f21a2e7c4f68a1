/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_BEHAVIOUR_H
#define SCHEDLAB_BEHAVIOUR_H

#include "policy.h"

/*
 * Priority by behaviour, as study 1 proposes (8.1): after each period of running
 * and sleeping, who hardly slept sinks by a level and who mostly slept rises, by two
 * levels at most. Time in the queue does not count: it says nothing of what the
 * task wants.
 */

enum { BEHAVIOUR_BIAS_MAX = 2 };

struct behaviour {
    uint64_t judged;     /* the task's run time when it was judged last */
    uint64_t slept;      /* nanoseconds since then */
    uint64_t blocked_at; /* the time; for a task that sleeps */
    int32_t bias;        /* levels by which the task has sunk */
};
typedef struct behaviour SHARED_MEMORY behaviour_t;

/* A period of 0: nobody is judged. */
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
