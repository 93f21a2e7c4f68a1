/* SPDX-License-Identifier: MIT */
#ifndef WORKLOADS_API_HOST_H
#define WORKLOADS_API_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/process_info.h"
#include "abi/system_calls.h"
#include "abi/trace_format.h"

/*
 * What each host supplies, beside the functions of workload.h that need its
 * system calls: schedlab_host.c and linux_host.c. common.c stands on these.
 */

_Noreturn void host_exit(int status);
int host_fork(void);
/* Returns the PID of a child that ended, or -1 if there is none left. */
int host_wait(int *status);
void host_kill(int pid);     /* it may have ended already */
bool host_pipe(int ends[2]); /* [0] to read from, [1] to write to; false: failed */
void host_mark(enum mark_kind kind, uint64_t value);
uint64_t host_seed(void);
/* Writes a line, to the output or to the errors, in one write. */
void host_print(bool error, const char *format, ...) __attribute__((format(__printf__, 2, 3)));
/* Opens the caller's own file. Returns a descriptor to write to a new one, or to read from it, or
 * -1 if it failed. */
int host_open(bool create);
/* Returns false if fewer bytes went through. */
bool host_write(int descriptor, const void *source, int bytes);
bool host_read(int descriptor, void *destination, int bytes);
void host_close(int descriptor);
bool host_remove(int process); /* the file of that process */
int host_process(void);        /* the caller's PID */
/* Says that `what` failed, and why. */
void host_complain(const char *what);
/* Does the same, and ends the caller with status 1. */
_Noreturn void host_fail(const char *what);

/*
 * What the program `play` needs beside that. Where it says "false: failed",
 * host_complain() knows why.
 */

/* The caller becomes the first process of a family, of which no process outlives it. */
void host_begin_family(void);
/* The caller starts processes at given times: if the host can do that, nothing that a policy orders
 * makes it late. Its children are as any. */
void host_begin_arrivals(void);
/* Returns zeroed memory, which children that are forked later share, or null if it failed. */
void *host_shared_memory(uint64_t bytes);
/* Returns a descriptor to read a file, and the file's size, or -1 if it failed. */
int host_open_path(const char *path, uint64_t *bytes);
/* Channels for the caller and children that are forked later, as docs/system-calls.md has them. */
bool host_channels_make(uint32_t count);
/* RELEASE_NONE; enum take_as */
bool host_channel_take(uint32_t channel, int64_t released, int as);
bool host_channel_give(uint32_t channel, uint64_t count, enum give_to to);
bool host_channel_meet(uint32_t channel, uint64_t processes);
uint64_t host_tick_ns(void);
/* A time is one of workload_nanoseconds(). Returns false if it had come before. */
bool host_sleep_until(int64_t time);
void host_sleep_ns(int64_t time);
void host_sleep_ticks(uint64_t ticks); /* until this many have come; the next one is the first */
/* Sets the caller's name, for tables: cut off if it is long. */
void host_set_name(const char *name);
/* Sets it of a process, which may have ended, or of the caller if that is 0. Returns false if it
 * failed. */
bool host_set_attribute(int process, enum attribute_kind kind, uint64_t value);
/* Sets what a group of tasks has. Returns false if it failed. */
bool host_set_group(uint32_t group, enum group_field field, uint64_t value);
/* The same for the CPUs on which it may run: CPU_LIST_WORDS words of abi/cpu_list.h. */
bool host_set_affinity(int process, const uint64_t *cpus);
/* Sets the machine's: "name" or "name:preset"; "name=value". Returns false if it failed. */
bool host_set_policy(const char *text);
bool host_set_tunable(const char *text);
/* Iterations of workload_burn() that take a CPU a millisecond. */
uint64_t host_burn_speed(void);

/* What they do for that, if they cannot know it (common.c): the speed of the fastest of some tries,
 * since others may compute, too. */
uint64_t fastest_burn(uint64_t iterations, int tries);

#endif
