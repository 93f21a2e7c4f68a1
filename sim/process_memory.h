/* SPDX-License-Identifier: MIT */
#ifndef SIM_PROCESS_MEMORY_H
#define SIM_PROCESS_MEMORY_H

#include "sim/machine.h"

/*
 * The memory of a process: the policy's state follows it, in the size that the policy asks for.
 * Memory after it is poisoned for AddressSanitizer.
 */

/* Returns the bytes of the policy's state of each process. */
uint32_t state_bytes_of(const struct policy *policy);
/* Returns the bytes of a process with this much state. */
size_t bytes_of_process(uint32_t state_bytes);
/* Returns the same for the machine's processes, without the padding for AddressSanitizer. */
size_t process_bytes(const struct simulator *simulator);
void guard_states(const struct simulator *simulator);
/* Moves all processes, none of them queued, into an array that can hold any policy's states. The
 * array lies in the arena. */
void move_processes(struct simulator *simulator);

#endif
