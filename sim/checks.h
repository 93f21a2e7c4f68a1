/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKS_H
#define SIM_CHECKS_H

#include "sim/simulator.h"

/* What a machine and a workload must be before a machine is made of them. Each returns false, with
 * the error, if they are not. */
bool check_tick(uint64_t tick_ns, struct simulator_error *error);
bool check_setup(const struct simulator_setup *setup, struct simulator_error *error);
bool check_workload(const struct simulator_workload *workload, uint32_t cpus,
                    struct simulator_error *error);

#endif
