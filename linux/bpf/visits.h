/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_VISITS_H
#define LINUX_BPF_VISITS_H

/* The CPU's visits to the scheduler, from one thread to the next. */

#include "introductions.h"

static void enter_scheduler(struct observed_cpu *cpu)
{
    if (!told.visits || cpu->inside)
        return;
    cpu->inside = 1;
    trace_emit(TRACE_SCHEDULER_ENTER, cpu->current, 0, bpf_ktime_get_boot_ns());
}

static void leave_scheduler(struct observed_cpu *cpu)
{
    if (!cpu->inside)
        return;
    cpu->inside = 0;
    trace_emit(TRACE_SCHEDULER_EXIT, cpu->current, 0, bpf_ktime_get_boot_ns());
}

static void emit_switch(struct observed_cpu *cpu, uint32_t next, uint32_t state_left)
{
    trace_emit(TRACE_SWITCH, next, cpu->current, cpu->current ? state_left : 0);
    cpu->current = next;
    cpu->yielded = 0;
    cpu->ended = 0;
}

/*
 * Writes START, and the thread that runs here: at sched_switch that is still the current thread. If
 * another CPU has already introduced it as a waiting thread, the trace switches to it.
 */
static __attribute__((noinline)) int start_cpu(struct trace_state *state, struct observed_cpu *cpu)
{
    struct task_struct *task = bpf_get_current_task_btf();
    cpu->started = 1;
    trace_emit(TRACE_START, 0, 0, bpf_ktime_get_boot_ns());
    if (task->pid == 0)
        return 0;
    struct observed *thread = observed_of(state, task);
    if (!thread)
        return 0;
    if (introduce(state, task, thread, PROCESS_RUNNING)) {
        cpu->current = thread->pid;
        return 0;
    }
    enter_scheduler(cpu);
    emit_switch(cpu, thread->pid, 0);
    leave_scheduler(cpu);
    thread->state = PROCESS_RUNNING;
    return 0;
}

/* Returns this CPU; its START is written. Interrupts are off. */
static struct observed_cpu *started_cpu(struct trace_state *state)
{
    struct observed_cpu *cpu = this_cpu();
    if (!cpu->started)
        start_cpu(state, cpu);
    return cpu;
}

/* Returns why this CPU was asked to pick again, and clears it; PREEMPT_NONE if it was not asked. */
#define PREEMPT_NONE 0
static uint32_t take_preempt_reason(void)
{
    uint32_t key = bpf_get_smp_processor_id();
    uint32_t *stored = bpf_map_lookup_elem(&preempt_reasons, &key);
    if (!stored)
        return PREEMPT_NONE;
    uint32_t reason = *stored;
    *stored = PREEMPT_NONE;
    return reason;
}

#endif
