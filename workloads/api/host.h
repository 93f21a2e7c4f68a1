/* SPDX-License-Identifier: MIT */
#ifndef WORKLOADS_API_HOST_H
#define WORKLOADS_API_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/process_info.h"
#include "abi/system_calls.h"
#include "abi/trace_format.h"

/*
 * The functions that each host supplies, in addition to those of workload.h
 * that need its system calls: schedlab_host.c and linux_host.c. common.c uses
 * these.
 */

_Noreturn void host_exit(int status);
int host_fork(void);
/* Returns the PID of a child that ended, or -1 if there are no more children. */
int host_wait(int *status);
void host_kill(int pid);     /* it may have ended already */
bool host_pipe(int ends[2]); /* [0] to read from, [1] to write to; false: failed */
void host_mark(enum mark_kind kind, uint64_t value);
uint64_t host_seed(void);
/* Writes a line, to the output or to the errors, in one write. */
void host_print(bool error, const char *format, ...) __attribute__((format(__printf__, 2, 3)));
/* Opens the caller's own file. Returns a descriptor to write to a new one, or to read from it,
 * or -1 on failure. */
int host_open(bool create);
/* Returns false if fewer bytes were transferred. */
bool host_write(int descriptor, const void *source, int bytes);
bool host_read(int descriptor, void *destination, int bytes);
void host_close(int descriptor);
bool host_remove(int process); /* the file of that process */
int host_process(void);        /* the caller's PID */
/* Prints that `what` failed, and why. */
void host_complain(const char *what);
/* Does the same, and ends the caller with status 1. */
_Noreturn void host_fail(const char *what);

/*
 * Functions that the program `play` needs in addition. Where a comment says
 * "false: failed", host_complain() prints the reason.
 */

/* Makes the caller the first process of a family; no process of the family outlives it. */
void host_begin_family(void);
/* Prepares the caller to start processes at given times: if the host supports it, no policy can
 * delay it. Its children are not affected. */
void host_begin_arrivals(void);
/* Returns zeroed memory, which later children share, or null on failure. */
void *host_shared_memory(uint64_t bytes);
/* Returns a descriptor to read a file, and the file's size, or -1 on failure. */
int host_open_path(const char *path, uint64_t *bytes);
/* Channels for the caller and its later children, as in docs/system-calls.md. */
bool host_channels_make(uint32_t count);
/* RELEASE_NONE; enum take_as */
bool host_channel_take(uint32_t channel, int64_t released, int as);
bool host_channel_give(uint32_t channel, uint64_t count, enum give_to to);
bool host_channel_meet(uint32_t channel, uint64_t processes);
uint64_t host_tick_ns(void);
/* `time` is on the clock of workload_nanoseconds(). Returns false if it had passed before. */
bool host_sleep_until(int64_t time);
void host_sleep_ns(int64_t time);
void host_sleep_ticks(uint64_t ticks); /* until this many have come; the next one is the first */
/* Sets the caller's name, for tables; a long name is truncated. */
void host_set_name(const char *name);
/* Sets an attribute of a process, which may have ended, or of the caller if `process` is 0.
 * Returns false on failure. */
bool host_set_attribute(int process, enum attribute_kind kind, uint64_t value);
/* Sets a field of a group of tasks. Returns false on failure. */
bool host_set_group(uint32_t group, enum group_field field, uint64_t value);
/* Sets the CPUs that a process may use: CPU_LIST_WORDS words of abi/cpu_list.h. Returns false on
 * failure. */
bool host_set_affinity(int process, const uint64_t *cpus);
/* Set the machine's policy or tunable: "name" or "name:preset"; "name=value". Return false on
 * failure. */
bool host_set_policy(const char *text);
bool host_set_tunable(const char *text);
/* Returns the iterations of workload_burn() that take a CPU a millisecond. */
uint64_t host_burn_speed(void);

/* Measures that if the host cannot know it (common.c): returns the speed of the fastest of some
 * tries, because other processes may compute, too. */
uint64_t fastest_burn(uint64_t iterations, int tries);

#endif
