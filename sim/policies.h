/* SPDX-License-Identifier: MIT */
#ifndef SIM_POLICIES_H
#define SIM_POLICIES_H

#include "sim/machine.h"

/* The policy in force: chosen by its name, with its tunables and costs, and replaced by another. */

bool choose_policy(const char *text, struct policy_choice *choice, struct simulator_error *error);
/* Notes the name of the policy in force. */
void name_policy(struct simulator *simulator, const struct policy_choice *choice);
/* Sets those of "name=value,name=value", before the policy is installed; null or empty: none. */
bool set_tunables(struct simulator *simulator, const char *text, struct simulator_error *error);
/* Records the policy with which the machine begins, and the tunables that were set. */
void record_first_policy(struct simulator *simulator, const char *tunables);
/* Puts the costs under this policy into force. Returns false if no time is left between ticks. */
bool set_costs(struct simulator *simulator, const struct policy_choice *choice,
               struct simulator_error *error);

/* Puts another policy, or the same one with another tunable, into force from now on, on behalf of
 * that CPU, or OUTSIDE. Returns false if it cannot; nothing has changed then. */
bool switch_policy(struct simulator *simulator, uint32_t cpu, const char *text,
                   struct simulator_error *error);
bool switch_tunable(struct simulator *simulator, uint32_t cpu, const char *text,
                    struct simulator_error *error);

#endif
