/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_SCHEDULER_H
#define KERNEL_SCHEDULER_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/trace_format.h"
#include "policies/policy.h"

struct process;

/*
 * The scheduler's mechanism: run queues with their locks, the context switch,
 * what happens at a tick, between CPUs and when the policy changes. Whom to run
 * is the policy's decision (policies/policy.h).
 */

/* At boot: the policy and tunables of the boot arguments `policy` and `set`. */
void scheduler_init(void);
/* Each CPU ends its boot here. */
_Noreturn void scheduler_idle(void);

/* The current process gives up the CPU; these return when it runs again. */
void scheduler_block(void);         /* it has been marked blocked by process_block() */
void scheduler_yield(void);         /* it stays runnable */
void scheduler_preempt(void);       /* its turn is over */
_Noreturn void scheduler_end(void); /* it is a zombie */
/* A new process's first act, in place of the return from the switch. */
void scheduler_finish_switch(void);

/* A process becomes runnable for the first time, or wakes. The caller holds its lock. */
void scheduler_add(struct process *process, enum enqueue_reason reason);
/* It has ended and is about to be freed. */
void scheduler_forget(struct process *process);

/* At each tick of this CPU. */
void scheduler_tick(void);

/* Sets an attribute of a process; the caller holds its lock. 0 or -ERANGE, and nothing changed. */
int scheduler_set_attribute(struct process *process, enum attribute_kind kind, int64_t value);

/* Switches the policy while everything runs. "name" or "name:preset". 0 or -EINVAL. */
int scheduler_set_policy(const char *text);
const char *scheduler_policy_text(void);
/* -ENOENT: no such tunable. -ERANGE: not allowed. */
int scheduler_set_tunable(const char *name, int64_t value);
int scheduler_get_tunable(const char *name, int64_t *value);
/* Ticks that a process may run when it is picked; 0: the policy does not know it yet. */
uint64_t scheduler_time_slice(const struct process *process);

#endif
