/* SPDX-License-Identifier: MIT */
#ifndef SIM_WAITING_H
#define SIM_WAITING_H

#include "sim/machine.h"

/* A process stops waiting before what it waits for has come. */

/* Takes the process out of the line of the channel or of the timers in which it waits. */
void stop_waiting(struct simulator *simulator, struct process *process);
/* Takes timers for which no process waits any more out of the heap, until the first one is not
 * such a timer. */
void drop_dead_timers(struct simulator *simulator);

#endif
