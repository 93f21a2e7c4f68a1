/* SPDX-License-Identifier: MIT */
#ifndef SIM_COMPILE_H
#define SIM_COMPILE_H

#include "sim/simulator.h"

/* Writes a workload that simulator_create() takes as a file of abi/workload_file.h. `tick_ns`: with
 * which its text was read. */
bool simulator_compile(const struct simulator_workload *workload, uint64_t tick_ns,
                       const char *path, struct simulator_error *error);

#endif
