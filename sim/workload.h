/* SPDX-License-Identifier: MIT */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim/simulator.h"

/*
 * Reads workload files (abi/workload_file.h), which cannot be trusted. These functions reject
 * references beyond the file, and simulator_create() rejects invalid steps. Reading allocates
 * memory, which simulator_free_workload() frees.
 */

/* Reads a workload from a file's contents. `name`: the file's name, for errors. `bytes`: the
 * contents, aligned as by malloc(); they are copied. `tick_ns`: the machine's tick length, which
 * the file must match. Returns false if the file is invalid; the caller then frees nothing. */
bool simulator_read_workload(struct simulator_workload *workload, const char *name,
                             const void *bytes, uint64_t count, uint64_t tick_ns,
                             struct simulator_error *error);
/* Reads a workload from the file at a path; "-": the standard input. */
bool simulator_load_workload(struct simulator_workload *workload, const char *path,
                             uint64_t tick_ns, struct simulator_error *error);
void simulator_free_workload(struct simulator_workload *workload);

#endif
