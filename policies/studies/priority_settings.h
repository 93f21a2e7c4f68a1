/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_PRIORITY_SETTINGS_H
#define SCHEDLAB_PRIORITY_SETTINGS_H

#include "policies/policy.h"

/*
 * The tunables of study-priority.c.
 */

enum {
    STUDY_SLICE,
    STUDY_AGING_INTERVAL,
    STUDY_AGING_STEP,
    STUDY_AGING_KEEPS,
    STUDY_AGING_BY_PASSES,
    STUDY_IDLE_PASSES,
    STUDY_WAKING_FIRST,
    STUDY_STALLED_AFTER,
    STUDY_STALLED_INTERVAL,
    STUDY_EXEMPT_PIDS,
    STUDY_LEVEL_WIDTH,
    STUDY_BEHAVIOUR,
    STUDY_FAST_LANE,
    STUDY_PID_LIMIT,
    STUDY_KILL_AFTER,
    STUDY_PREEMPTION,
    STUDY_PLACEMENT,
    STUDY_BALANCING,
    STUDY_SCAN,
    STUDY_TUNABLES,
};

enum { PLACE_BY_LEVEL, PLACE_FEWEST_WAITING, PLACE_LEAST_WEIGHT };

enum { PID_MAX = 0x7fffffff };

static const struct tunable study_priority_tunables[] = {
    [STUDY_SLICE] = {"slice", "ticks of a turn among tasks of the same level", 1, 1, 1000},
    [STUDY_AGING_INTERVAL] = {"aging_interval", "ticks between raises of waiting tasks; 0: none", 0,
                              50, 1000000},
    [STUDY_AGING_STEP] = {"aging_step", "levels of a raise", 1, 1, PRIORITY_LOWEST},
    [STUDY_AGING_KEEPS] = {"aging_keeps", "a raise is 0: for one turn; 1: until priority is set", 0,
                           0, 1},
    [STUDY_AGING_BY_PASSES] = {"aging_by_passes",
                               "1: intervals are passes of any CPU through the scheduler, and "
                               "tasks that run or sleep rise, too",
                               0, 0, 1},
    [STUDY_IDLE_PASSES] = {"idle_passes", "by an idle CPU in a tick", 0, 0, 1000000},
    [STUDY_WAKING_FIRST] = {"waking_first",
                            "1: a task that wakes is at level 0 from then on, unless at level 5", 0,
                            0, 1},
    [STUDY_STALLED_AFTER] = {"stalled_after",
                             "ticks; while the first in some level's line has waited for longer, "
                             "its CPU's tasks rise every stalled_interval; 0: off",
                             0, 0, 1000000},
    [STUDY_STALLED_INTERVAL] = {"stalled_interval", "ticks between raises then", 1, 25, 1000000},
    [STUDY_EXEMPT_PIDS] = {"exempt_pids", "PIDs up to this do not age", 0, 2, PID_MAX},
    [STUDY_LEVEL_WIDTH] = {"level_width", "priorities at one level; 3: 0-2, 3-5, 6-8, 9-10", 1, 1,
                           PRIORITY_LOWEST + 1},
    [STUDY_BEHAVIOUR] =
        {"behaviour",
         "ticks run or slept, after which a task that hardly slept sinks by a level "
         "and one that mostly slept rises, by two levels at most; 0: off",
         0, 0, 1000000},
    [STUDY_FAST_LANE] = {"fast_lane", "1: priority 5 is served before priority 0", 0, 0, 1},
    [STUDY_PID_LIMIT] = {"pid_limit", "PIDs above this have priority 5 and do not age; 0: none", 0,
                         0, PID_MAX},
    [STUDY_KILL_AFTER] = {"kill_after",
                          "ticks of run time after which a task, not PID 1 or 2, is ended; 0: none",
                          0, 0, 1000000000},
    [STUDY_PREEMPTION] = {"preemption", "a higher task takes over 0: at a tick; 1: at once", 0, 1,
                          1},
    [STUDY_PLACEMENT] = {"placement",
                         "0: on the CPU that serves the lowest level; or, when forked, where "
                         "1: the fewest wait; 2: the sum of 10 - level is least",
                         PLACE_BY_LEVEL, PLACE_BY_LEVEL, PLACE_LEAST_WEIGHT},
    [STUDY_BALANCING] = {"balancing", "ticks between moves of tasks to other CPUs; 0: they stay", 0,
                         1, 100000},
    [STUDY_SCAN] = {"scan", "a pick 0: finds its level by a bitmap; 1: looks at each level's list",
                    0, 0, 1},
};

_Static_assert(sizeof(study_priority_tunables) / sizeof(study_priority_tunables[0]) ==
                   STUDY_TUNABLES,
               "all are there");

#endif
