/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_MECHANISM_H
#define SIM_ENGINE_MECHANISM_H

/*
 * The mechanism that queues, picks and stops processes: that of policies, or that of sched_ext. The
 * steps of processes (waits.h to acts.h) and the order of events (order.h) are the same for both.
 */

#ifdef FOR_SCHED_EXT
#include "sim/sched_ext/mechanism.h"
#else
#include "sim/engine/changes.h"
#include "sim/engine/switch.h"
#endif

#endif
