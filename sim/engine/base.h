/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_BASE_H
#define SIM_ENGINE_BASE_H

/* Shared parts of the engine: the policy, trace records, and the entry into the kernel. */

#include "sim/events.h"
#include "sim/machine.h"
#include "sim/tracing.h"

#include "policies/support/flaws.h"

static void fail_by_cpu(const scheduler_t *scheduler, enum queue_flaw flaw);
#define NOTE_BAD_CPU(scheduler, flaw)                                                              \
    fail_by_cpu(scheduler, flaw) /* called by policies/support/hooks.h */
#include "policies/support/queueing.h"

extern const struct engine ENGINE;

#ifdef CHECKED
#include "sim/checked/hooks.h"
static const struct policy *const policy = &CHECKED_POLICY;
#else
static const struct policy *const policy = &POLICY;
#endif

/* In the whole engine, `acting_cpu` is the CPU that acts, or OUTSIDE. */

static inline void record_number(struct simulator *simulator, uint32_t acting_cpu,
                                 enum trace_kind kind, int32_t pid, uint32_t first, uint64_t second)
{
    if (!simulator->trace.next)
        return;
    if (acting_cpu == OUTSIDE) {
        record_outside(simulator, kind, (uint32_t)pid, first, second);
    } else {
        simulator->cpus[acting_cpu].records++;
        trace_write(&simulator->trace, simulator->now, acting_cpu, kind, (uint32_t)pid, first,
                    second);
    }
}

static inline void record(struct simulator *simulator, uint32_t acting_cpu, enum trace_kind kind,
                          const struct process *process, uint32_t first, uint64_t second)
{
    record_number(simulator, acting_cpu, kind, (int32_t)pid_of(process), first, second);
}

static inline bool in_kernel(const struct simulator *simulator, const struct cpu *cpu)
{
    return cpu->resumes > simulator->now || cpu->calls;
}

/* Accounts for the CPU time of the CPU's process until now. */
static inline void progress(const struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    uint64_t now = simulator->now;
    task_count_run_time(&process->task, policy_now(simulator));
    if (now > cpu->resumes) {
        uint64_t elapsed = now - cpu->resumes;
        process->left -= elapsed < process->left ? elapsed : process->left;
        cpu->resumes = now;
    }
}

#endif
