/* SPDX-License-Identifier: MIT */
#ifndef SIM_POLICIES_H
#define SIM_POLICIES_H

#include "sim/machine.h"

/* Chooses the active policy by name, sets its tunables and costs, and replaces it by another
 * policy. */

bool choose_policy(const char *text, struct policy_choice *choice, struct simulator_error *error);
/* Chooses the first policy, which may be a scheduler of sched_ext: then the choice is its stub. */
bool choose_first_policy(const char *text, struct policy_choice *choice,
                         struct simulator_error *error);
const struct engine *engine_of(const struct policy_choice *choice);
/* Records the name of the active policy. */
void name_policy(struct simulator *simulator, const struct policy_choice *choice);
/* Sets tunables from "name=value,name=value", before the policy is installed. Null or empty: sets
 * none. */
bool set_tunables(struct simulator *simulator, const char *text, struct simulator_error *error);
/* Records the machine's first policy, and the tunables that were set. */
void record_first_policy(struct simulator *simulator, const char *tunables);
/* Activates the costs under this policy. Returns false if they leave no time between ticks. */
bool set_costs(struct simulator *simulator, const struct policy_choice *choice,
               struct simulator_error *error);

/* Activates another policy, or the same policy with a changed tunable. `cpu`: the CPU that changes
 * the policy, or OUTSIDE. If it fails, returns false and changes nothing. */
bool switch_policy(struct simulator *simulator, uint32_t cpu, const char *text,
                   struct simulator_error *error);
bool switch_tunable(struct simulator *simulator, uint32_t cpu, const char *text,
                    struct simulator_error *error);

#endif
