/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_KERNEL_TYPES_H
#define LINUX_LOADER_KERNEL_TYPES_H

#include <stdbool.h>

/* The running kernel's features, by its type information. */

struct btf;

bool has_tracepoint(const struct btf *kernel, const char *name);
bool has_function(const struct btf *kernel, const char *name);
/* Returns true if sched_ext has a callback of that name. */
bool has_callback(const struct btf *kernel, const char *name);

#endif
