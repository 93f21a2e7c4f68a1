/* SPDX-License-Identifier: MIT */
#ifndef WORKLOADS_API_LOADER_H
#define WORKLOADS_API_LOADER_H

#include "abi/workload_file.h"

/* Returns a file in memory that all processes share. If the file cannot be read, or is damaged,
 * prints an error and ends the process with status 2. `program`: name in the message. */
struct workload_file_contents workload_load(const char *program, const char *path);

#endif
