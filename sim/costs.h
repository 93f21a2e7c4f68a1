/* SPDX-License-Identifier: MIT */
#ifndef SIM_COSTS_H
#define SIM_COSTS_H

#include "policies/registry.h"
#include "sim/simulator.h"

/* The costs "kernel" of sim/costs/kernel.json, as "NAME=NANOSECONDS,...". */
extern const char costs_of_kernel[];

/* Returns false if a cost exceeds its range. */
bool costs_check(const struct simulator_costs *costs, struct simulator_error *error);

/* Returns the costs under a policy. The cost of the preset takes precedence, then the cost of the
 * policy, then the general cost. */
struct simulator_costs costs_under(const struct simulator_costs *costs,
                                   const struct policy_choice *choice);

#endif
