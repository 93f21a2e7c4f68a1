/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_EVENTS_H
#define KERNEL_SCHEDULER_EVENTS_H

#include "process/process.h"
#include "scheduler/cpu.h"
#include "scheduler/run_queue.h"

/* Private to kernel/scheduler/. */

void run_queues_init(void);

/* Asks a CPU to pick again as soon as it can. */
void scheduler_request(struct cpu *cpu, enum preempt_reason reason);
/* Notifies the CPU that should run, or take, a queued process. The queue is locked. */
void scheduler_announce(struct queue *queue, const struct process *process);
/* Notifies an idle CPU that may run a process of the shared queue, if there is one. */
void scheduler_call_idle(const struct process *process);
/* Called when the process, now the only one in the queue of all CPUs, was stopped by a tick. This
 * CPU and each idle one are equally likely to take it. Returns true if an idle CPU takes it. */
bool scheduler_pass_on(const struct queue *queue, const struct process *process);
/* Applies a verdict of a policy's hook to the current process: any verdict except TICK_CONTINUE.
 * No queue is locked. `hook`: its name, for messages. */
void scheduler_obey(struct cpu *cpu, struct process *process, enum tick_verdict verdict,
                    const char *hook);
/* Asks an idle CPU to pick if there may be a process for it. Returns false if there is none. */
bool scheduler_look_for_work(struct cpu *cpu);

/* The PID for the trace: 0 if there is no process. */
static inline uint32_t pid_of(const struct process *process)
{
    return process ? (uint32_t)process->pid : 0;
}

#endif
