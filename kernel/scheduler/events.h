/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_EVENTS_H
#define KERNEL_SCHEDULER_EVENTS_H

#include "scheduler/cpu.h"

/* Private to kernel/scheduler/. */

void run_queues_init(void);

/* Asks a CPU to pick again as soon as it can. */
void scheduler_request(struct cpu *cpu, enum preempt_reason reason);

#endif
