/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_IDLE_CPUS_H
#define KERNEL_SCHEDULER_IDLE_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/policy.h"
#include "scheduler/cpu.h"

/* Which CPUs have nothing to run, and which of them have no ticks either. Private to
 * kernel/scheduler/. Values read here without a lock are hints. */

void idle_cpu_set(const struct cpu *cpu, bool idle);
bool cpu_is_idle(uint32_t cpu);
/* Returns the lowest idle CPU of a set (null: of all), or NO_CPU if none is idle. */
uint32_t idle_cpu_lowest(const struct cpu_set *cpus);
/* Returns true if the CPU was idle and had not been notified yet. Marks it as notified. */
bool idle_cpu_claim(uint32_t cpu);

/* Stops an idle CPU's ticks until a process is queued for it, or still_cpus_call() notifies it. */
void still_cpu_begin(struct cpu *cpu);
void still_cpu_end(struct cpu *cpu);
/* Makes CPUs without ticks check whether they may take a waiting process. */
void still_cpus_call(void);

#endif
