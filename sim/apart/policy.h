/* SPDX-License-Identifier: MIT */
#ifndef SIM_SEPARATE_POLICY_H
#define SIM_SEPARATE_POLICY_H

#include "policies/policy.h"

/* The struct policy of sim/apart/policy.c, which sim/engine.c is compiled for. Its hooks and its
 * name are those of the policy in the module, known only at the start. */
extern struct policy policy_separate;

#endif
