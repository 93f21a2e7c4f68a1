/* SPDX-License-Identifier: MIT */
#ifndef SIM_PROCESS_MEMORY_H
#define SIM_PROCESS_MEMORY_H

#include "sim/machine.h"

/*
 * The memory of processes. Each process is followed by the policy's state, in the size that the
 * policy requests. The memory after this state is poisoned for AddressSanitizer.
 */

/* Returns the bytes of the policy's state of each process. */
uint32_t state_bytes_of(const struct policy *policy);
/* Returns the bytes of a process, including its state. */
size_t bytes_of_process(uint32_t state_bytes);
/* Returns the bytes of each process of the machine, without the padding for AddressSanitizer. */
size_t process_bytes(const struct simulator *simulator);
void guard_states(const struct simulator *simulator);
/* Moves all processes into a new array in the arena, which has room for the states of any policy.
 * No process may be queued. */
void move_processes(struct simulator *simulator);

#endif
