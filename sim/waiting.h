/* SPDX-License-Identifier: MIT */
#ifndef SIM_WAITING_H
#define SIM_WAITING_H

#include "sim/machine.h"

/* Ends a process's wait before the awaited event. */

/* Takes the process out of its channel's list, or removes its timer. */
void stop_waiting(struct simulator *simulator, struct process *process);
/* Removes dead timers, which no process waits for, until the first timer of the heap is not
 * dead. */
void drop_dead_timers(struct simulator *simulator);

#endif
