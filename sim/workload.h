/* SPDX-License-Identifier: MIT */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim/simulator.h"

/*
 * Workload files (abi/workload_file.h), which may come from anyone: what does not lie within the
 * file is refused here, and steps that cannot be done by simulator_create(). Reading takes memory,
 * which simulator_free_workload() gives back.
 */

/* `name`: of the file, for errors. `bytes`: as aligned as malloc() has them; they are copied.
 * `tick_ns`: the machine's, for which the file must have been made. Returns false if the file is
 * wrong: nothing is to be freed. */
bool simulator_read_workload(struct simulator_workload *workload, const char *name,
                             const void *bytes, uint64_t count, uint64_t tick_ns,
                             struct simulator_error *error);
/* The same, of a file; "-": the standard input. */
bool simulator_load_workload(struct simulator_workload *workload, const char *path,
                             uint64_t tick_ns, struct simulator_error *error);
void simulator_free_workload(struct simulator_workload *workload);

#endif
