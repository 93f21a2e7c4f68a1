/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_PROBLEM_H
#define LINUX_LOADER_PROBLEM_H

/* What was wrong with the last command that failed: the control file sched_problem has its text,
 * which scheduler_problem() of scheduler.h returns. It belongs to the main thread. */

/* Keeps the text, and returns `error`. */
__attribute__((format(printf, 2, 3))) int fail(int error, const char *format, ...);

#endif
