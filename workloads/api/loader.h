/* SPDX-License-Identifier: MIT */
#ifndef WORKLOADS_API_LOADER_H
#define WORKLOADS_API_LOADER_H

#include "abi/workload_file.h"

/* A file of abi/workload_file.h in memory that all processes share. */
struct loaded_workload {
    const struct workload_file_header *header;
    const struct workload_file_program *programs;
    const struct workload_step *steps;
    const uint64_t *channels;
    const uint32_t *texts;
    const char *characters; /* of names and texts */
};

/* Ends the process with status 2 if the file cannot be read, or is damaged, and says so. `program`:
 * who says it. */
struct loaded_workload workload_load(const char *program, const char *path);

#endif
