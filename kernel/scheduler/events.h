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
/* Calls the CPU that should run, or take, a process that was queued. The queue is locked. */
void scheduler_announce(struct queue *queue, const struct process *process);
/* Calls an idle CPU that may run a process which is queued in the queue of all, if there is one. */
void scheduler_call_idle(const struct process *process);
/* The current process does what a hook of the policy has said about it: any verdict except that to
 * continue. No queue is locked. `hook`: its name, as messages have it. */
void scheduler_obey(struct cpu *cpu, struct process *process, enum tick_verdict verdict,
                    const char *hook);
/* Asks an idle CPU to pick if there may be a process for it. Returns false if there is none. */
bool scheduler_look_for_work(struct cpu *cpu);

/* In the trace: 0 if there is no process. */
static inline uint32_t pid_of(const struct process *process)
{
    return process ? (uint32_t)process->pid : 0;
}

#endif
