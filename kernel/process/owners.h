/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_PROCESS_OWNERS_H
#define KERNEL_PROCESS_OWNERS_H

#include <stdbool.h>
#include <stddef.h>

#include "process/process.h"

/*
 * The wait graph, under a policy that asks for it (waiters_changed()): a blocked process waits for
 * at most one other, its owner, which must act before the process continues.
 *
 * owners_lock guards the links between tasks, and is taken before any run queue's lock. So the
 * policy does not change while it is held. Together with process_tree_lock it guards the table of
 * PIDs: changing it needs both, looking up a PID needs one of them.
 */
extern struct spinlock owners_lock;

void owners_init(void);
/* Records that the process, which is blocked or about to be, waits for the process of PID
 * `owner`. 0: for none. */
__attribute__((noinline)) void owners_name(struct process *process, int owner);
/* Does the same for a process that may have been woken since: then nothing happens. */
void owners_name_again(struct process *process, int owner);
/* The process is woken, or does not wait after all. */
static inline void owners_woken(struct process *process)
{
    if (__builtin_expect(process->task.waits_for != NULL, 0))
        owners_name(process, 0);
}
/* Sets the highest ceiling of the process's locks: 1 more than a priority; 0: no lock has one. */
void owners_set_ceiling(struct process *process, uint32_t ceiling);
/* An attribute of the process was changed: notifies its owner. */
void owners_changed(struct process *process);
/* The process ends, and no process waits for it any more. */
void owners_end(struct process *process);
/* The policy is switched: removes all links. Needs the lock. */
void owners_forget(void);

#endif
