/* SPDX-License-Identifier: MIT */
#ifndef WORKLOADS_API_HOST_H
#define WORKLOADS_API_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/process_info.h"
#include "abi/system_calls.h"

/*
 * What each host supplies, beside the functions of workload.h that need its
 * system calls: schedlab_host.c and linux_host.c. common.c stands on these.
 */

_Noreturn void host_exit(int status);
int host_fork(void);
/* The PID of a child that ended, -1: there is none left. */
int host_wait(int *status);
void host_kill(int pid);     /* it may have ended already */
bool host_pipe(int ends[2]); /* [0] to read from, [1] to write to; false: failed */
void host_mark(enum mark_kind kind, uint64_t value);
uint64_t host_seed(void);
/* A line, to the output or to the errors, in one write. */
void host_print(bool error, const char *format, ...) __attribute__((format(__printf__, 2, 3)));
/* The caller's own file: a descriptor to write to a new one, or to read from it. -1: failed. */
int host_open(bool create);
/* False: fewer bytes went through. */
bool host_write(int descriptor, const void *source, int bytes);
bool host_read(int descriptor, void *destination, int bytes);
void host_close(int descriptor);
bool host_remove(int process); /* the file of that process */
int host_process(void);        /* the caller's PID */
/* Says that `what` failed, and why. */
_Noreturn void host_fail(const char *what);

#endif
