/* SPDX-License-Identifier: MIT */
#ifndef WORKLOADS_API_SUITE_H
#define WORKLOADS_API_SUITE_H

#include "workloads/api/workload.h"

/*
 * The structure of study 1's suites: tests that start processes, wait for them
 * all, and report the time and the number of context switches.
 */

enum { SUITE_GROUPS = 2, PRIORITY_UNCHANGED = -1 };

/* Identical processes: in each round they compute, and sleep. */
struct suite_group {
    const char *label; /* of the group in the tables */
    int processes;
    int priority; /* that each process sets for itself */
    int rounds;
    int64_t iterations; /* the study's; suite.c defines the work of one */
    int sleep;          /* ticks */
    bool echo;          /* each ends as the program `echo hi` */
};

struct suite_test {
    const char *name;
    struct suite_group groups[SUITE_GROUPS]; /* started in this order */
    int batch;         /* this many at a time, the next ones when all have ended; 0: all at once */
    bool shortest;     /* the study reports the shortest time, not the time when all have ended */
    int shortest_from; /* ticks; processes that took less do not count for that */
};

struct suite {
    const char *meaning;
    struct suite_test *tests;
    int count;
    int pause;             /* ticks after each test, if all are run */
    void (*study_2)(void); /* changes the tests to those of study 2 */
};

/* Does all the work of main(): returns its exit status. */
int suite_run(const struct suite *suite, int argc, char *argv[]);

#endif
