/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_LIMITS_H
#define LINUX_LOADER_LIMITS_H

#include <stdbool.h>

#include "text.h"

/*
 * What this machine uses of the kernel's own class that a policy does not honour:
 * limits, weights and idleness of CPU time by control group, and nice values. A
 * policy that goes by groups honours weights and limits, if the kernel tells it of them.
 */

/* Of what was found. */
#define LIMITS_NOT_HONOURED                                                                        \
    "the policy would not honour what is in use here: %.1500s. "                                   \
    "--ignore-limits, of `serve` or of the monitor that begins to, passes over it"

/* What a policy honours of it: bits. */
#define HONOURS_WEIGHTS 1u /* of control groups */
#define HONOURS_QUOTAS  2u

/*
 * Adds what is in use, each with the group or the task that has it, as far as a message should
 * be long. Returns false if nothing is in use except what is `honoured`. `cgroups`: where control
 * groups are mounted, of either version; `proc`: the folder /proc.
 */
bool limits_in_use(const char *cgroups, const char *proc, unsigned honoured, struct text *found);
/* Returns the same of this machine. */
bool limits_in_use_here(unsigned honoured, struct text *found);

#endif
