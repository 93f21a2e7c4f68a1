/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_CONTROL_FILES_H
#define LINUX_LOADER_CONTROL_FILES_H

/*
 * The control files, a file system in user space (FUSE) that the main thread
 * serves: sched_status, sched_tunables and sched_policies, as
 * docs/system-calls.md describes them; and sched_problem, which says what was
 * wrong with the last command that failed, or why the kernel has ended a policy.
 *
 * A write that has to wait for a policy to be loaded is answered later; the
 * server goes on meanwhile.
 */

#include <stdbool.h>

#define CONTROL_STATUS   "sched_status"
#define CONTROL_TUNABLES "sched_tunables"
#define CONTROL_POLICIES "sched_policies"
#define CONTROL_PROBLEM  "sched_problem"

/* Makes the folder if it is not there, and mounts the files on it. Returns 0 or a negative errno,
 * and said.
 */
int control_files_begin(const char *folder);
/* Takes them away, and the folder if it was made. Writes that wait are answered by an error. */
void control_files_end(void);
/* Removes what a server that was killed left mounted, which leads nowhere. Returns true if there
 * was such a thing. */
bool control_files_clear(const char *folder);

/* Readable when a process uses the files. */
int control_files_descriptor(void);
/* Answers one request. Returns false if the files have been unmounted. */
bool control_files_handle(void);
/* Once a load has ended: tries the commands again that wait for one. */
void control_files_resume(void);

#endif
