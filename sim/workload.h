/* SPDX-License-Identifier: MIT */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "sim/simulator.h"

/*
 * Workloads as text: a step on each line, programs one after the other, the first
 * one first. docs/simulator.md has the words. Reading takes memory, which
 * simulator_free_workload() gives back.
 */

/* `name`: of the text, for errors. `tick_ns`: what a tick in a time is. Returns false if the text
 * is wrong: nothing is to be freed, and the error has the line. */
bool simulator_read_workload(struct simulator_workload *workload, const char *name,
                             const char *text, uint64_t tick_ns, struct simulator_error *error);
/* The same, of a file; "-": the standard input. */
bool simulator_load_workload(struct simulator_workload *workload, const char *path,
                             uint64_t tick_ns, struct simulator_error *error);
void simulator_free_workload(struct simulator_workload *workload);

#endif
