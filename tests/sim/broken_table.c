/* SPDX-License-Identifier: MIT */

/* The tables of a simulator that knows only the broken policy. */

#include "sim/machine.h"

extern const struct policy policy_broken;
extern const struct engine engine_broken;

const struct policy *const policies[] = {&policy_broken};
const uint32_t policies_count = 1;
const struct engine *const engines[] = {&engine_broken};
