/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_LINUX_COMMANDS_H
#define SCHEDLAB_LINUX_COMMANDS_H

#include "policies/policy.h"

/*
 * The commands of sched_status as study 5 has them (its section 3.6.2), under the presets `linux`:
 * 0, 1 and 2 choose CFS, WRR and lottery, and other numbers choose nothing. A priority that is not
 * from 1 to 10 counts as 5, and one for a PID that does not exist has no effect. The study's
 * priority is schedlab's weight.
 */
static const char *const linux_numbered[] = {"cfs:linux", "wrr:linux", "lottery:linux", NULL};

static const struct preset_commands linux_commands = {
    .preset = "linux",
    .numbered = linux_numbered,
    .weight = 5,
};

#endif
