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
 * ticks, notifications between CPUs, and policy switches. The policy decides
 * which process runs (policies/policy.h).
 */

/* Called at boot: uses the policy and tunables of the boot arguments `policy` and `set`. */
void scheduler_init(void);
/* Each CPU ends its boot here. */
_Noreturn void scheduler_idle(void);

/* The current process gives up the CPU; these return when it runs again. */
void scheduler_block(void);         /* it has been marked blocked by process_block() */
void scheduler_yield(void);         /* it stays runnable */
void scheduler_preempt(void);       /* its turn has ended */
_Noreturn void scheduler_end(void); /* it is a zombie */
/* A new process's first act, instead of the return from the switch. */
void scheduler_finish_switch(void);

/* Adds a process that becomes runnable for the first time, wakes, or is moved because it may no
 * longer run where it was. The caller holds its lock. */
void scheduler_add(struct process *process, enum enqueue_reason reason);
/* A process has ended and is about to be freed. */
void scheduler_forget(struct process *process);

/* Called at each tick of this CPU. Returns false if it needs no more ticks until it is notified. */
bool scheduler_tick(void);

/* Sets an attribute of a process; the caller holds its lock. Returns 0, or -ERANGE with nothing
 * changed. */
int scheduler_set_attribute(struct process *process, enum attribute_kind kind, int64_t value);

/* Sets a field of a group of tasks (enum group_field). Returns 0, or -ERANGE with nothing
 * changed. */
int scheduler_set_group(uint64_t group, uint32_t field, int64_t value);
/* Restricts a process to these CPUs, ignoring nonexistent ones; the caller holds its lock.
 * Returns 0, or -EINVAL if none of them exists. */
int scheduler_set_affinity(struct process *process, const struct cpu_set *cpus);
/* True if any process has ever had a restricted CPU set. */
extern bool scheduler_affinity_used;
/* Returns the existing CPUs that a process may use; the caller holds its lock. */
struct cpu_set scheduler_affinity(const struct process *process);
/* Gives the current process's CPU set to its child. */
void scheduler_inherit_affinity(struct process *child);

/* Returns true if the active policy asks for the wait graph. The answer holds until the policy
 * is switched, which takes owners_lock. */
bool scheduler_asks_for_owners(void);
/* Notifies that the processes that wait for this one changed. Needs owners_lock. */
void scheduler_waiters_changed(struct process *owner);

/* Returns true if the active policy chooses which of several waiting processes continues. */
bool scheduler_orders_waiters(void);
/* begin takes owners_lock and end releases it. Between them, scheduler_choose_waiter() is called
 * for each waiting process, in the order of arrival. `chosen` is the choice so far, or null. It
 * returns the new choice. */
struct queue *scheduler_begin_choice(void);
struct process *scheduler_choose_waiter(struct queue *queue, struct process *chosen,
                                        struct process *waiter);
void scheduler_end_choice(struct queue *queue);

/*
 * Makes the current process and its future children run before all others, until they wait or end;
 * the policy never sees them. Or ends that: the policy then learns of them as after a switch.
 */
void scheduler_set_urgent(enum urgency urgent);

/* Switches the policy while everything runs: a name or number, or either with ":preset". Returns
 * 0 or -EPOLICY. */
int scheduler_set_policy(const char *text);
/* Switches to the present policy again, with another value of one of its tunables. -ETUNABLE: no
 * such tunable. -ERANGE: not allowed. */
int scheduler_set_tunable(const char *name, int64_t value);
int scheduler_get_tunable(const char *name, int64_t *value);
/* Starts the present policy again, with its present tunables and other random numbers. */
void scheduler_set_seed(uint64_t seed);

/* A snapshot of the active policy. */
#define POLICY_TEXT_BYTES 64
struct policy_in_use {
    const struct policy *policy;
    char text[POLICY_TEXT_BYTES]; /* "name" or "name:preset" */
    enum share_attribute shares_by;
    int64_t tunable[POLICY_TUNABLES_MAX];
    uint32_t groups;                 /* of tasks, with the root; 0: none was set */
    const struct share_group *group; /* they may change at any time */
};
void scheduler_describe(struct policy_in_use *use);
/* Returns the attribute that determines the policy's shares of the CPU. Needs a run queue's
 * lock, except at boot. */
enum share_attribute scheduler_shares_by(void);
/* Returns the tickets of a process under this policy. */
uint64_t scheduler_tickets(const struct process *process);
/* Returns the ticks that a process may run when it is picked, or 0 if the policy does not know
 * it yet. */
uint64_t scheduler_time_slice(const struct process *process);

#endif
