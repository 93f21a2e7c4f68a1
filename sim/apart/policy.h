/* SPDX-License-Identifier: MIT */
#ifndef SIM_APART_POLICY_H
#define SIM_APART_POLICY_H

#include "policies/policy.h"

/* For sim/engine.c, before which policies are included: a policy whose hooks are known only when it
 * begins. */
extern struct policy policy_apart;

#endif
