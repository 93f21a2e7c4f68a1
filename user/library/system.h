/* SPDX-License-Identifier: MIT */
#ifndef USER_LIBRARY_SYSTEM_H
#define USER_LIBRARY_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

#include "abi/errors.h"
#include "abi/files.h"
#include "abi/machine_status.h"
#include "abi/process_info.h"
#include "abi/system_calls.h"

/*
 * The system calls; docs/system-calls.md describes each in full. On failure
 * they return -1, and last_error() has the reason (abi/errors.h).
 */

/* Processes */
int fork(void); /* the child's PID; 0 in the child */
_Noreturn void exit(int status);
int wait(int *status); /* the PID of a child that ended; status may be null */
int kill(int pid);
int exec(const char *path, char *const arguments[]); /* returns only on failure */
int getpid(void);
int setname(const char *name); /* up to 15 characters, for tables and traces */
int yield(void);
int last_error(void);

/* Files */
int pipe(int descriptors[2]); /* [0] to read from, [1] to write to */
int read(int descriptor, void *destination, int bytes);
int write(int descriptor, const void *source, int bytes);
int open(const char *path, int flags);
int close(int descriptor);
int dup(int descriptor);
int fstat(int descriptor, struct file_status *status);
int mknod(const char *path, int major, int minor);
int unlink(const char *path);
int link(const char *old_path, const char *new_path);
int mkdir(const char *path);
int chdir(const char *path);
int sync(void);

/* Memory: returns the heap's previous end, or SYSTEM_FAILED if it cannot change that way. */
#define SYSTEM_FAILED ((void *)-1)
void *sbrk(int64_t change);
void *sbrk_lazy(int64_t growth); /* the pages are added at their first access */

/* Returns new zeroed pages, which later children share with the caller. SYSTEM_FAILED: there are
 * none. */
void *shared_memory(int64_t bytes);

/* Channels: semaphores that the caller and its later descendants share, 0 to `count` - 1. */
int channels_make(int count);                         /* new empty ones, replacing its present
                                                       * ones */
int channel_take(int channel, int released, int as);  /* RELEASE_NONE, or one is given to that
                                                       * channel before; enum take_as */
int channel_give(int channel, int64_t count, int to); /* enum give_to */
int channel_meet(int channel, int processes);         /* waits for the last of this many */

/* Time */
int sleep(int ticks);
int sleep_ns(int64_t time);
int sleep_until_ns(int64_t time); /* since boot; 1: that time had passed */
int uptime(void);                 /* ticks since boot */
int64_t clock_ns(void);           /* nanoseconds since boot */
int64_t cycles(void);             /* this CPU's cycle counter */

/* Scheduling */
int setpriority(int pid, int priority);
int settickets(int tickets); /* of the caller */
int settickets_pid(int pid, int tickets);
int setweight(int pid, int weight);
int setattribute(int pid, int kind, int64_t value); /* enum attribute_kind; PID 0: of the caller */
int getattribute(int pid, int kind, int64_t *value);
int setgroup(int group, int field, int64_t value); /* enum group_field, of a group of processes */
/* Set and get the CPUs that a process and its later children may use: a bit for each, in words
 * of 64. PID 0: the caller. */
int setaffinity(int pid, const uint64_t *cpus, int words);
int getaffinity(int pid, uint64_t *cpus, int words);
int seturgent(int urgent); /* enum urgency: before all tasks that policies order, or not */
/* Returns the number of rows filled in; with no capacity, the number of processes. */
int getpinfo(struct process_info *rows, int capacity);
int64_t getcontextswitches(void);
int getstats(struct system_stats *stats);
int getcpustats(int cpu, struct cpu_stats *stats);
int setpolicy(const char *policy); /* "name" or "name:preset" */
int getpolicy(char *policy, int capacity);
int settunable(const char *name, int64_t value);
int gettunable(const char *name, int64_t *value);
int mark(int kind, uint64_t value);

/* The machine */
int poweroff(int status); /* returns only on failure */
int boot_argument(const char *name, char *value, int capacity);

#endif
