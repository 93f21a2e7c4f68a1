/* SPDX-License-Identifier: MIT */
#ifndef SIM_PROCESS_MEMORY_H
#define SIM_PROCESS_MEMORY_H

#include "sim/machine.h"

/*
 * How much memory a process takes: the policy's state of it follows it, as much as the
 * policy asks for. AddressSanitizer is told that what follows is not the policy's.
 */

/* Returns the bytes of state that the policy has of each process. */
uint32_t state_bytes_of(const struct policy *policy);
/* Returns the bytes of a process with so much state. */
size_t bytes_of_process(uint32_t state_bytes);
/* Returns the same of the machine's processes, without what is there for AddressSanitizer. */
size_t bytes_of_each_process(const struct simulator *simulator);
void guard_states(const struct simulator *simulator);
/* Moves all processes, of which none is queued, into an array with room for any policy's states.
 * The arena has it. */
void move_processes(struct simulator *simulator);

#endif
