/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_LIMITS_H
#define LINUX_LOADER_LIMITS_H

#include <stdbool.h>

#include "text.h"

/*
 * What this machine uses of the kernel's own class that no policy honours:
 * limits, weights and idleness of CPU time by control group, and nice values.
 */

/* Of what was found. */
#define LIMITS_NOT_HONOURED                                                                        \
    "no policy honours what is in use here: %.1500s. "                                             \
    "--ignore-limits, of `serve` or of the monitor that begins to, passes over it"

/*
 * Adds what is in use, each with the group or the task that has it, as far as a message should
 * be long. Returns false if nothing is in use. `cgroups`: where control groups are mounted, of
 * either version; `proc`: the folder /proc.
 */
bool limits_in_use(const char *cgroups, const char *proc, struct text *found);
/* Returns the same of this machine. */
bool limits_in_use_here(struct text *found);

#endif
