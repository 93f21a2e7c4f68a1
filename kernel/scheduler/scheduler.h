/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_SCHEDULER_H
#define KERNEL_SCHEDULER_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/system_calls.h"
#include "abi/trace_format.h"
#include "policies/policy.h"

struct process;
struct queue;

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

/* A process becomes runnable for the first time, or wakes, or is moved as it may not run any more
 * where it was. The caller holds its lock. */
void scheduler_add(struct process *process, enum enqueue_reason reason);
/* A process has ended and is about to be freed. */
void scheduler_forget(struct process *process);

/* Called at each tick of this CPU. Returns false if it needs no more of them until it is called. */
bool scheduler_tick(void);

/* Sets an attribute of a process; the caller holds its lock. Returns 0 or -ERANGE, and nothing
 * changed. */
int scheduler_set_attribute(struct process *process, enum attribute_kind kind, int64_t value);

/* Sets what a group of tasks has (enum group_field). Returns 0 or -ERANGE, and nothing changed. */
int scheduler_set_group(uint64_t group, uint32_t field, int64_t value);
/* Lets a process run on these CPUs alone, of which those that do not exist count for nothing; the
 * caller holds its lock. Returns 0 or -EINVAL if none of them exists. */
int scheduler_set_affinity(struct process *process, const struct cpu_set *cpus);
/* Has any process ever been kept from a CPU? */
extern bool scheduler_affinity_used;
/* Returns the CPUs on which a process may run, of those that exist; the caller holds its lock. */
struct cpu_set scheduler_affinity(const struct process *process);
/* The current process's child may run where its parent may. */
void scheduler_inherit_affinity(struct process *child);

/* Does the policy in force ask who waits for whom? It does so until it is switched, and that takes
 * owners_lock. */
bool scheduler_asks_for_owners(void);
/* Other processes wait for this one than before. owners_lock is held. */
void scheduler_tell_waiters_changed(struct process *owner);

/* Does the policy in force say which of several that wait for the same thing goes on? */
bool scheduler_orders_waiters(void);
/* begin takes owners_lock and end releases it. Between them, scheduler_choose_waiter() is called
 * for each process that waits, in the order in which they came: `chosen` is the one chosen of those
 * before it, or null. It returns which of the two is chosen now. */
struct queue *scheduler_begin_choice(void);
struct process *scheduler_choose_waiter(struct queue *queue, struct process *chosen,
                                        struct process *waiter);
void scheduler_end_choice(struct queue *queue);

/*
 * The current process and the children that it will fork run before all others, until they wait or
 * end, and the policy never sees them; or no longer, and then it gets to know them as after a
 * switch.
 */
void scheduler_set_urgent(enum urgency urgent);

/* Switches the policy while everything runs: a name or number, or either with ":preset". 0 or
 * -EPOLICY. */
int scheduler_set_policy(const char *text);
/* Switches to the present policy anew, with another value of one of its tunables. -ETUNABLE: it has
 * none of that name. -ERANGE: not allowed. */
int scheduler_set_tunable(const char *name, int64_t value);
int scheduler_get_tunable(const char *name, int64_t *value);
/* Begins the present policy anew, with its tunables as they are and other random numbers. */
void scheduler_set_seed(uint64_t seed);

/* The policy in force at one moment. */
#define POLICY_TEXT_BYTES 64
struct policy_in_use {
    const struct policy *policy;
    char text[POLICY_TEXT_BYTES]; /* "name" or "name:preset" */
    enum share_attribute shares_by;
    int64_t tunable[POLICY_TUNABLES_MAX];
    uint32_t groups;                 /* of tasks, with the root; 0: none was set */
    const struct share_group *group; /* they may change meanwhile */
};
void scheduler_describe(struct policy_in_use *use);
/* By which attribute the policy shares the CPU out. With a run queue locked, or at boot. */
enum share_attribute scheduler_shares_by(void);
/* Returns the tickets with which a process takes part, under this policy. */
uint64_t scheduler_tickets(const struct process *process);
/* Returns the ticks that a process may run when it is picked, or 0 if the policy does not know it
 * yet. */
uint64_t scheduler_time_slice(const struct process *process);

#endif
