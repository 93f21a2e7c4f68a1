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
 * them. A process is runnable if and only if it is on exactly one run queue;
 * functions here keep that and assert it. Private to kernel/scheduler/.
 *
 * An urgent process is in a line of its own, before all that the policy orders,
 * and is nothing to the policy: as one that runs when the policy is switched.
 */
struct queue {
    struct spinlock lock; /* guards all of this, the tasks queued, and the CPUs' `current` */
    struct run_queue view;
    uint64_t state[POLICY_QUEUE_BYTES / 8];
    struct list urgent;  /* the first to come first */
    uint64_t alarm_told; /* the policy's alarm, as its CPU knows it */
};

/* Changed only with all queues locked; may be read with any one locked, and so may not change
 * while a hook runs: each is called with one of them locked. */
extern const struct policy *policy;
extern struct scheduler scheduler;
extern uint32_t policy_generation; /* counts the policy's switches, from 1 */

extern struct queue queues[CPUS_MAX]; /* in the order of CPUs, which is that of locking */

/* Returns the queue that serves a CPU. It may be another one until it is locked. */
struct queue *queue_serving(uint32_t cpu);
/* Returns the queue that serves a CPU, locked, its time set to now. */
struct queue *queue_lock(uint32_t cpu);
/* Returns the queue of the process's CPU, locked; the process stays on that CPU while it is. */
struct queue *queue_lock_of_process(const struct process *process);
void queue_unlock(struct queue *queue);

void queue_add(struct queue *queue, struct process *process, enum enqueue_reason reason);
void queue_remove(struct queue *queue, struct process *process);
/* Takes out the process to run next on `cpu`. Returns null if there is none. */
struct process *queue_pick(struct queue *queue, uint32_t cpu);
/* Does a process wait in the queue? */
bool queue_waits(const struct queue *queue);
/* A running process ends as far as the policy is concerned. */
void queue_forget(struct queue *queue, struct process *process);
/* Does the policy know this process? False after a switch, until it is queued again. */
static inline bool queue_knows(const struct process *process)
{
    return process->policy_generation == policy_generation;
}
/* A rule of run queues is broken. `task` may be null. */
_Noreturn void queue_panic(const struct run_queue *queue, const struct task *task,
                           enum queue_flaw flaw);

/*
 * Moves one process to the CPU's queue, *own, from the one that the policy names. *own is
 * locked, and is again on return, but not in between. Returns null if there was no process to
 * move.
 */
struct process *queue_pull(struct queue **own, uint32_t cpu, bool idle);
/*
 * Moves one process from the CPU's queue to the one that the policy names. Returns the process,
 * with the queue that it is in locked in *to, or null if there was none to move.
 */
struct process *queue_push(struct queue **to, uint32_t cpu);
/* May an idle CPU find something to run, in its queue or elsewhere? */
bool queue_has_work(uint32_t cpu);
/* Does a process wait in any queue? Read without locks: a hint. */
bool queues_wait(void);
/* Returns the CPU for a process that is new or wakes. */
uint32_t queue_place(const struct process *process, enum enqueue_reason reason);

#endif
