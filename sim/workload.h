/* SPDX-License-Identifier: MIT */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim/simulator.h"

/*
 * Workload files (abi/workload_file.h), which may come from any source: data outside of the file is
 * refused here, and invalid steps by simulator_create(). Reading takes memory;
 * simulator_free_workload() frees it.
 */

/* `name`: of the file, for errors. `bytes`: aligned as by malloc(); they are copied. `tick_ns`:
 * the machine's, which the file must match. Returns false if the file is wrong: nothing must
 * then be freed. */
bool simulator_read_workload(struct simulator_workload *workload, const char *name,
                             const void *bytes, uint64_t count, uint64_t tick_ns,
                             struct simulator_error *error);
/* The same, of a file; "-": the standard input. */
bool simulator_load_workload(struct simulator_workload *workload, const char *path,
                             uint64_t tick_ns, struct simulator_error *error);
void simulator_free_workload(struct simulator_workload *workload);

#endif
