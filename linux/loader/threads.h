/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_THREADS_H
#define LINUX_LOADER_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

#include "linux/bpf/shared.h"
#include "policies/support/scheduler_text.h"

/* Threads of this machine: their attributes, their kind, and their rows in sched_status. */

struct bpf_link;

/* Sets an attribute of a thread of any class in the map of attributes, while no policy is
 * active. Returns 0 or a negative errno. */
int store_attribute(int attributes, int32_t pid, uint32_t kind, int64_t value);
/* Returns true for a living thread that is not the kernel's. */
bool is_users_thread(int32_t pid);
/* Returns true for a thread of this program. */
bool is_monitor_thread(int32_t pid);
/* Adds the row of a thread to sched_status. */
void add_row(struct text *text, const struct scheduler_view *view, const struct host_task *row);
/* Returns all rows of an iterator, as an array that the caller frees, or null with errno. */
struct host_task *read_tasks(const struct bpf_link *iterator, size_t *count);

#endif
