/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_COURSE_CALLS_H
#define SCHEDLAB_ABI_COURSE_CALLS_H

#include <stdint.h>

/* Numbers that a course may assign to its calls; docs/course-programs.md explains how. */
#define COURSE_CALL_FIRST 22
#define COURSE_CALL_LAST  63

/* The table that the common lottery exercise for xv6 asks for: an array for each property. */
#define PSTAT_PROCESSES 64

struct pstat {
    int32_t in_use[PSTAT_PROCESSES]; /* 1: the process exists; else its other fields are 0 */
    int32_t tickets[PSTAT_PROCESSES];
    int32_t pid[PSTAT_PROCESSES];
    int32_t ticks[PSTAT_PROCESSES]; /* that it has run */
};

_Static_assert(sizeof(struct pstat) == 1024, "programs have the size built in");

/* The same as in study 1's programs: a row for each of PSTAT_PROCESSES. */
struct pinfo {
    int32_t pid; /* 0: none */
    int32_t tickets;
    int32_t ticks_scheduled; /* times that it was picked */
};

#endif
