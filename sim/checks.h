/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKS_H
#define SIM_CHECKS_H

#include "sim/simulator.h"

/* Preconditions of a machine and a workload, checked before the machine is created. Each function
 * returns false, with the error, if a precondition is not met. */
bool check_tick(uint64_t tick_ns, struct simulator_error *error);
bool check_setup(const struct simulator_setup *setup, struct simulator_error *error);
bool check_workload(const struct simulator_workload *workload, uint32_t cpus,
                    struct simulator_error *error);

#endif
