/* SPDX-License-Identifier: MIT */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "sim/machine.h"

/* Processes start and end, and step through their programs. */

/* Creates a process in a new slot. It runs the program and inherits from its parent, if that is
 * not null. Returns null if all slots are used. */
struct process *process_create(struct simulator *simulator, struct process *parent,
                               uint32_t program);
/* Frees a process that has been reaped. */
void process_free(struct simulator *simulator, struct process *process);
/* Returns the process's parent, or init if that has ended. */
struct process *process_parent(const struct simulator *simulator, const struct process *process);

void zombie_append(struct simulator *simulator, struct process *parent, struct process *child);
/* Takes out the zombie that ended first. Returns null if there is none. */
struct process *zombie_take(struct simulator *simulator, struct process *parent);
/* Hands the parent's zombies to init. Returns false if it had none. */
bool zombies_bequeath(struct simulator *simulator, struct process *parent);

/* Returns the process's program. */
uint32_t program_of(const struct simulator *simulator, const struct process *process);
/* Returns the program's name, which a process has from its fork. */
const char *name_of(const struct simulator *simulator, uint32_t program);
/* Ends the present step, and begins the next one. */
void advance(struct simulator *simulator, struct process *process);

#endif
