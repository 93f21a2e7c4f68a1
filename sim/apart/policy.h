/* SPDX-License-Identifier: MIT */
#ifndef SIM_SEPARATE_POLICY_H
#define SIM_SEPARATE_POLICY_H

#include "policies/policy.h"

/* For sim/engine.c, which includes a policy first: a policy whose hooks are known only when it
 * starts. */
extern struct policy policy_separate;

#endif
