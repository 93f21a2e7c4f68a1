/* SPDX-License-Identifier: MIT */
#ifndef SIM_POLICIES_H
#define SIM_POLICIES_H

#include "sim/machine.h"

/* The active policy: chosen by its name, with its tunables and costs, and replaced by another. */

bool choose_policy(const char *text, struct policy_choice *choice, struct simulator_error *error);
/* Records the name of the active policy. */
void name_policy(struct simulator *simulator, const struct policy_choice *choice);
/* Sets tunables from "name=value,name=value", before the policy is installed; null or empty:
 * none. */
bool set_tunables(struct simulator *simulator, const char *text, struct simulator_error *error);
/* Records the machine's first policy, and the tunables that were set. */
void record_first_policy(struct simulator *simulator, const char *tunables);
/* Activates the costs under this policy. Returns false if they leave no time between ticks. */
bool set_costs(struct simulator *simulator, const struct policy_choice *choice,
               struct simulator_error *error);

/* Activates another policy, or the same one with another tunable, on behalf of that CPU, or
 * OUTSIDE. Returns false on failure; nothing has then changed. */
bool switch_policy(struct simulator *simulator, uint32_t cpu, const char *text,
                   struct simulator_error *error);
bool switch_tunable(struct simulator *simulator, uint32_t cpu, const char *text,
                    struct simulator_error *error);

#endif
