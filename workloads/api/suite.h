/* SPDX-License-Identifier: MIT */
#ifndef WORKLOADS_API_SUITE_H
#define WORKLOADS_API_SUITE_H

#include "workloads/api/workload.h"

/*
 * The form of study 1's suites: tests that start processes, wait for them all,
 * and tell how long that took and how many context switches there were.
 */

enum { SUITE_GROUPS = 2, PRIORITY_UNCHANGED = -1 };

/* Processes that do the same: in each round they compute, and sleep. */
struct suite_group {
    const char *label; /* of the group in the tables */
    int processes;
    int priority; /* that each sets for itself */
    int rounds;
    int64_t iterations; /* the study's; suite.c says how much work one is */
    int sleep;          /* ticks */
    bool echo;          /* each ends as the program `echo hi` */
};

struct suite_test {
    const char *name;
    struct suite_group groups[SUITE_GROUPS]; /* started in this order */
    int batch;         /* this many at a time, the next ones when all have ended; 0: all at once */
    bool shortest;     /* what the study tells is not when all have ended, but the shortest time */
    int shortest_from; /* ticks; processes that took less do not count for that */
};

struct suite {
    const char *meaning;
    struct suite_test *tests;
    int count;
    int pause;             /* ticks after each test, if all are run */
    void (*study_2)(void); /* changes the tests to what study 2 has instead */
};

/* Does all of main(): returns its exit status. */
int suite_run(const struct suite *suite, int argc, char *argv[]);

#endif
