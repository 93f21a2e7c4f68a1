/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_PROCESS_OWNERS_H
#define KERNEL_PROCESS_OWNERS_H

#include <stdbool.h>
#include <stddef.h>

#include "process/process.h"

/*
 * Who waits for whom, under a policy that asks for it (waiters_changed()): a blocked process waits
 * for at most one other, its owner, which must act before it goes on.
 *
 * owners_lock guards the links between tasks, and is taken before any run queue's lock; and so the
 * policy does not change while it is held. Besides process_tree_lock it guards the table of PIDs:
 * to change that needs both, to look up a PID one of them.
 */
extern struct spinlock owners_lock;

void owners_init(void);
/* The process, which is blocked or about to be, waits for the process of PID `owner` from now on.
 * 0: for none. */
__attribute__((noinline)) void owners_name(struct process *process, int owner);
/* The same, of a process that may have been woken meanwhile: then nothing happens. */
void owners_name_again(struct process *process, int owner);
/* The process is woken, or does not wait after all. */
static inline void owners_woken(struct process *process)
{
    if (__builtin_expect(process->task.waits_for != NULL, 0))
        owners_name(process, 0);
}
/* The highest ceiling of the locks that the process has: 1 more than a priority; 0: none has one.
 */
void owners_set_ceiling(struct process *process, uint32_t ceiling);
/* An attribute of the process was changed: its owner hears of it. */
void owners_changed(struct process *process);
/* The process ends, and none waits for it any more. */
void owners_end(struct process *process);
/* The policy is switched: all links go. The lock is held. */
void owners_forget(void);

#endif
