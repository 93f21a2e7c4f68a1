/* SPDX-License-Identifier: MIT */
#ifndef SIM_WAITING_H
#define SIM_WAITING_H

#include "sim/machine.h"

/* Ends a process's wait before the awaited event. */

/* Takes the process out of the list of its channel or of the timers. */
void stop_waiting(struct simulator *simulator, struct process *process);
/* Removes dead timers from the heap, until the first one is live. No process waits for a dead
 * timer. */
void drop_dead_timers(struct simulator *simulator);

#endif
