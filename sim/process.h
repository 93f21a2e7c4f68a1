/* SPDX-License-Identifier: MIT */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "sim/machine.h"

/* Creates and frees processes, and moves them through their programs. */

/* Creates a process in a new slot. The process runs the program, and inherits from its parent if
 * `parent` is not null. Returns null if all slots are used. */
struct process *process_create(struct simulator *simulator, struct process *parent,
                               uint32_t program);
/* Frees a process that has been reaped. */
void process_free(struct simulator *simulator, struct process *process);
/* Returns the process's parent, or init if the parent has ended. */
struct process *process_parent(const struct simulator *simulator, const struct process *process);

void zombie_append(struct simulator *simulator, struct process *parent, struct process *child);
/* Takes out the zombie that ended first. Returns null if there is none. */
struct process *zombie_take(struct simulator *simulator, struct process *parent);
/* Moves the parent's zombies to init. Returns false if there were none. */
bool zombies_bequeath(struct simulator *simulator, struct process *parent);

/* Returns the process's program. */
uint32_t program_of(const struct simulator *simulator, const struct process *process);
/* Returns the program's name. A process has this name from its fork. */
const char *name_of(const struct simulator *simulator, uint32_t program);
/* Ends the process's present step, and begins its next step. */
void advance(struct simulator *simulator, struct process *process);

#endif
