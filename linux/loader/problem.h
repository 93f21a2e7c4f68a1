/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_PROBLEM_H
#define LINUX_LOADER_PROBLEM_H

/* The error of the last failed command: the control file sched_problem has its text, which
 * scheduler_problem() of scheduler.h returns. It belongs to the main thread. */

/* Stores the text, and returns `error`. */
__attribute__((format(printf, 2, 3))) int fail(int error, const char *format, ...);

#endif
