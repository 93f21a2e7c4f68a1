/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_LIMITS_H
#define LINUX_LOADER_LIMITS_H

#include <stdbool.h>

#include "text.h"

/*
 * Features of the kernel's fair class that this machine uses and a policy does not honour: limits,
 * weights and idleness of CPU time by control group, and nice values. A policy that always
 * uses groups honours weights and limits, if the kernel passes them on.
 */

/* The message; takes the list of features in use. */
#define LIMITS_NOT_HONOURED                                                                        \
    "the policy ignores limits in use here: %.1500s. "                                             \
    "Start `serve` or the monitor with --ignore-limits to run it anyway"

/* The features that a policy honours: bits. */
#define HONOURS_WEIGHTS 1u /* of control groups */
#define HONOURS_QUOTAS  2u

/*
 * Adds the features in use, each with its group or task, up to the length of a message. Returns
 * false if only `honoured` features are in use. `cgroups`: the mount point of control groups, of
 * either version; `proc`: the directory /proc.
 */
bool limits_in_use(const char *cgroups, const char *proc, unsigned honoured,
                   struct text *description);
/* Does the same for this machine. */
bool limits_in_use_on_host(unsigned honoured, struct text *description);

#endif
