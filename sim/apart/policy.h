/* SPDX-License-Identifier: MIT */
#ifndef SIM_APART_POLICY_H
#define SIM_APART_POLICY_H

#include "policies/policy.h"

/* For sim/engine.c, which includes a policy first: a policy whose hooks are known only when it
 * starts. */
extern struct policy policy_apart;

#endif
