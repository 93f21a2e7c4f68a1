/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_RUN_QUEUE_H
#define KERNEL_SCHEDULER_RUN_QUEUE_H

#include "scheduler/bad_cpu.h"

#include "policies/support/queueing.h"
#include "process/process.h"
#include "scheduler/cpu.h"
#include "sync/spinlock.h"

/*
 * The run queues, one for each CPU or one for all, and the policy that orders
 * them. Invariant: a process is runnable if and only if it is on exactly one
 * run queue; functions here preserve and assert it. Private to
 * kernel/scheduler/.
 *
 * An urgent process is in a separate list, before all processes that the policy
 * orders. The policy does not know it, as if it had been running during a
 * policy switch.
 */
struct queue {
    struct spinlock lock; /* guards this structure, the queued tasks, and the CPUs' `current` */
    struct run_queue view;
    uint64_t state[POLICY_QUEUE_BYTES / 8];
    struct list urgent;      /* in the order of arrival */
    uint64_t alarm_recorded; /* the policy's alarm, as its CPU knows it */
};

/* Changed only with all queues locked; may be read with any one locked. So it cannot change
 * while a hook runs: each is called with one of them locked. */
extern const struct policy *policy;
extern struct scheduler scheduler;
extern uint32_t policy_generation; /* counts the policy's switches, from 1 */

extern struct queue queues[CPUS_MAX]; /* in the order of CPUs, which is the locking order */

/* Returns the queue that serves a CPU. It may change until it is locked. */
struct queue *queue_serving(uint32_t cpu);
/* Returns the queue that serves a CPU, locked, its time set to now. */
struct queue *queue_lock(uint32_t cpu);
/* Returns the queue of the process's CPU, locked; the process stays on that CPU while it is
 * locked. */
struct queue *queue_lock_of_process(const struct process *process);
void queue_unlock(struct queue *queue);

void queue_add(struct queue *queue, struct process *process, enum enqueue_reason reason);
void queue_remove(struct queue *queue, struct process *process);
/* Takes out the process to run next on `cpu`. Returns null if there is none. */
struct process *queue_pick(struct queue *queue, uint32_t cpu);
/* Returns true if a process waits in the queue. */
bool queue_waits(const struct queue *queue);
/* Ends a running process for the policy. */
void queue_forget(struct queue *queue, struct process *process);
/* Returns true if the policy knows this process. False after a switch, until it is queued again. */
static inline bool queue_knows(const struct process *process)
{
    return process->policy_generation == policy_generation;
}
/* Reports a broken invariant of run queues. `task` may be null. */
_Noreturn void queue_panic(const struct run_queue *queue, const struct task *task,
                           enum queue_flaw flaw);

/*
 * Moves one process to the CPU's queue, *own, from the queue that the policy names. *own is locked,
 * and is again on return, but not in between. Returns null if there was no process to move.
 */
struct process *queue_pull(struct queue **local, uint32_t cpu, bool idle);
/*
 * Moves one process from the CPU's queue to the queue that the policy names. Returns the process,
 * with its new queue locked in *to, or null if there was none to move.
 */
struct process *queue_push(struct queue **to, uint32_t cpu);
/* Returns true if an idle CPU may find something to run, in its queue or elsewhere. */
bool queue_has_work(uint32_t cpu);
/* Returns true if a process waits in any queue. Read without locks: a hint. */
bool queues_wait(void);
/* Returns the CPU for a process that is new or wakes. */
uint32_t queue_place(const struct process *process, enum enqueue_reason reason);

#endif
