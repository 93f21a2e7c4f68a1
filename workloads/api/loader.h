/* SPDX-License-Identifier: MIT */
#ifndef WORKLOADS_API_LOADER_H
#define WORKLOADS_API_LOADER_H

#include "abi/workload_file.h"

/* Returns a file in memory that all processes share. Ends the process with status 2 if the file
 * cannot be read, or is damaged, and says so. `program`: who says it. */
struct workload_file_contents workload_load(const char *program, const char *path);

#endif
