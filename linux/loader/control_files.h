/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_CONTROL_FILES_H
#define LINUX_LOADER_CONTROL_FILES_H

/*
 * The control files, a file system in user space (FUSE) that the main thread serves: sched_status,
 * sched_tunables and sched_policies, as in docs/system-calls.md. In addition, sched_problem
 * contains the error of the last failed command, or why the kernel has ended a policy.
 *
 * A write that has to wait for a policy to be loaded is answered later; the server continues in the
 * meantime.
 */

#include <stdbool.h>

#define CONTROL_STATUS   "sched_status"
#define CONTROL_TUNABLES "sched_tunables"
#define CONTROL_POLICIES "sched_policies"
#define CONTROL_PROBLEM  "sched_problem"

/* Creates the directory if needed, and mounts the files on it. Returns 0, or a negative errno
 * after a message. */
int control_files_begin(const char *folder);
/* Removes them, and the directory if it was created. Waiting writes are answered by an error. */
void control_files_end(void);
/* Removes the stale mount of a killed server. Returns true if there was one. */
bool control_files_clear(const char *folder);

/* Returns a descriptor that is readable when a process uses the files. */
int control_files_descriptor(void);
/* Answers one request. Returns false if the files have been unmounted. */
bool control_files_handle(void);
/* Retries the commands that wait for a load, once it has ended. */
void control_files_resume(void);

#endif
