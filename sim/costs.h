/* SPDX-License-Identifier: MIT */
#ifndef SIM_COSTS_H
#define SIM_COSTS_H

#include "policies/registry.h"
#include "sim/simulator.h"

/* The built-in profile "kernel", from sim/costs/kernel.json: "NAME=NANOSECONDS,...". */
extern const char costs_of_kernel[];

/* Returns false if a cost exceeds its range. */
bool costs_check(const struct simulator_costs *costs, struct simulator_error *error);

/* Returns the costs under a policy: the preset's, else the policy's, else those of all policies. */
struct simulator_costs costs_under(const struct simulator_costs *costs,
                                   const struct policy_choice *choice);

#endif
