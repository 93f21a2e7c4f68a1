/* SPDX-License-Identifier: MIT */
#ifndef SIM_SEPARATE_POLICY_H
#define SIM_SEPARATE_POLICY_H

#include "policies/policy.h"

/* The policy that sim/engine.c includes for a separate machine. Its hooks are known only when it
 * starts. */
extern struct policy policy_separate;

#endif
