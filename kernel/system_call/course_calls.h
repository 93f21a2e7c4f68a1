/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SYSTEM_CALL_COURSE_CALLS_H
#define KERNEL_SYSTEM_CALL_COURSE_CALLS_H

#include <stdint.h>

/* Serves a call, given the six argument registers. */
typedef int64_t system_call_function(const uint64_t argument[]);

struct system_call {
    const char *name; /* as in docs/system-calls.md and docs/course-programs.md */
    system_call_function *function;
};

/*
 * Applies the boot argument calls=NUMBER:NAME,…: puts the call of each name, from the table or from
 * the courses' calls, at its number in the table.
 */
void course_calls_init(struct system_call *table, uint64_t count);

#endif
