/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_OBSERVED_LIVES_H
#define LINUX_BPF_OBSERVED_LIVES_H

/* Threads begin, move, change their names and PIDs, and end. */

#include "migration_disabled.h"
#include "visits.h"

/* Writes FORK of a new thread, once. Interrupts are off. */
static void report_fork(struct trace_state *state, struct task_struct *task)
{
    started_cpu(state);
    struct observed *thread = observed_of(state, task);
    if (!thread || thread->state != PROCESS_NEW)
        return;
    uint32_t parent = actor();
    thread->pid = (uint32_t)task->pid;
    thread->fresh = 1;
    thread->state = PROCESS_RUNNABLE;
    trace_emit(TRACE_FORK, parent, thread->pid, thread_of(task));
    struct task_struct *forks = bpf_get_current_task_btf();
    remember_name(thread, forks->comm);
    bool same_kind = ((task->flags ^ forks->flags) & THREAD_OF_KERNEL) == 0;
    if (parent == 0 || !same_kind || is_renamed(thread, task))
        report_name(state, thread, task->comm, task->flags);
    if (!same_allowed(task, parent ? forks : 0)) /* it begins in another control group */
        emit_allowed(state, task, thread->pid);
}

/* A new thread has become runnable. Interrupts are off. */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(observe_fork, struct task_struct *task)
{
    struct trace_state *state = trace_recording();
    if (!state || task->pid == 0)
        return 0;
    report_fork(state, task);
    this_cpu()->forked_to = task->thread_info.cpu + 1;
    return 0;
}

/* Called before a new thread is queued. Attached only if the trace has records of queues: FORK
 * must precede the thread's first QUEUED. */
SEC("fentry/post_init_entity_util_avg")
int BPF_PROG(observe_fork_before_it_is_queued, struct task_struct *task)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state || task->pid == 0)
        return 0;
    bpf_local_irq_save(&flags);
    report_fork(state, task);
    bpf_local_irq_restore(&flags);
    return 0;
}

/* A child needs its parent's attributes before a policy queues it for the first time. */
SEC("fentry/post_init_entity_util_avg")
int BPF_PROG(inherit_attributes, struct task_struct *task)
{
    struct task_struct *parent = bpf_get_current_task_btf();
    struct task_attributes *given = bpf_task_storage_get(&attributes, parent, 0, 0);
    if (!given || !given->set)
        return 0;
    struct task_attributes *child_attributes =
        bpf_task_storage_get(&attributes, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!child_attributes)
        return 0;
    INHERIT_ATTRIBUTES(child_attributes, given);
    child_attributes->set = 1;
    return 0;
}

/* Returns true from a thread's FORK or FOUND to its EXIT. */
static bool is_alive(const struct observed *thread)
{
    return thread && thread->state != PROCESS_NEW && thread->state != PROCESS_ZOMBIE;
}

/* Interrupts are off. */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(observe_move, struct task_struct *task, int to)
{
    struct trace_state *state = trace_recording();
    uint32_t from = task->thread_info.cpu;
    if (!state || task->pid == 0 || from == (uint32_t)to)
        return 0;
    started_cpu(state);
    struct observed *thread = bpf_task_storage_get(&observed, task, 0, 0);
    if (is_alive(thread))
        trace_emit(TRACE_MIGRATE, thread->pid, from, (uint64_t)(uint32_t)to);
    return 0;
}

/* A new name: by exec(), by the thread itself, or by another one. */
SEC("tp_btf/task_rename")
int BPF_PROG(observe_name, struct task_struct *task, const char *name)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state)
        return 0;
    bpf_local_irq_save(&flags);
    started_cpu(state);
    struct observed *thread = bpf_task_storage_get(&observed, task, 0, 0);
    if (is_alive(thread))
        report_name(state, thread, name, task->flags);
    bpf_local_irq_restore(&flags);
    return 0;
}

/*
 * The thread's CPU set changed. Its run queue is locked, so no CPU can switch to it. A thread that
 * may not move at present still runs where it was; the change is recorded once it may move. (A BPF
 * program that runs on a thread counts as one reason why the thread may not move.)
 */
SEC("fexit/set_cpus_allowed_common")
int BPF_PROG(observe_allowed, struct task_struct *task, struct affinity_context *change)
{
    struct trace_state *state = trace_recording();
    if (!state || change->flags & SCA_MIGRATE_DISABLE)
        return 0;
    started_cpu(state);
    struct observed *thread = bpf_task_storage_get(&observed, task, 0, 0);
    bool may_move = change->flags & SCA_MIGRATE_ENABLE;
    if (!is_alive(thread) || (may_move && !thread->later))
        return 0;
    thread->later = !may_move && is_held(task);
    if (!thread->later)
        emit_allowed(state, task, thread->pid);
    return 0;
}

/* Returns the status that a parent sees: the argument of exit(), or minus the signal that killed
 * the task. */
static uint32_t exit_status(struct task_struct *task)
{
    uint32_t code = (uint32_t)task->exit_code;
    return code & 0x7f ? -(code & 0x7f) : (code >> 8) & 0xff;
}

static void emit_exit(struct observed_cpu *cpu, struct task_struct *task)
{
    trace_emit(TRACE_EXIT, cpu->current, exit_status(task), 0);
}

/*
 * Writes EXIT of the running thread. It has released everything, and others are about to be
 * notified. So its EXIT precedes all their reactions, on any CPU. What the thread still does before
 * it leaves its CPU belongs to the scheduler. If it is preempted there, it leaves as a zombie, and
 * its time after that is idle time. Interrupts are off.
 */
static __attribute__((noinline)) int end_running(struct trace_state *state,
                                                 struct observed_cpu *cpu)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct observed *thread = bpf_task_storage_get(&observed, task, 0, 0);
    if (is_alive(thread)) {
        enter_scheduler(cpu);
        emit_exit(cpu, task);
        thread->state = PROCESS_ZOMBIE;
        cpu->ended = 1;
    }
    /* Another thread of its process may take over its PID by exec() immediately. */
    if (cpu->ended && task->pid == task->tgid && task->signal->nr_threads > 1)
        emit_switch(cpu, 0, PROCESS_ZOMBIE);
    return 0;
}

/* The kernel may skip this program (see observer.bpf.c). Then the next program, a wake-up by the
 * thread, or its last switch ends it. */
SEC("fentry/exit_notify")
int BPF_PROG(observe_end)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state)
        return 0;
    bpf_local_irq_save(&flags);
    end_running(state, started_cpu(state));
    bpf_local_irq_restore(&flags);
    return 0;
}

/* Interrupts are off. */
SEC("fentry/do_notify_parent")
int BPF_PROG(observe_parent_told, struct task_struct *task)
{
    struct trace_state *state = trace_recording();
    if (state && task == bpf_get_current_task_btf())
        end_running(state, started_cpu(state));
    return 0;
}

/*
 * Handles exec() by a thread that is not the first of its process: it takes the first thread's PID,
 * and all its other threads have ended. In the trace, the caller forks a process of that PID, and
 * ends.
 */
static void change_pid(struct observed_cpu *cpu, struct observed *thread, uint32_t pid)
{
    trace_emit(TRACE_FORK, cpu->current, pid, 0);
    enter_scheduler(cpu);
    trace_emit(TRACE_EXIT, cpu->current, 0, 0);
    emit_switch(cpu, pid, PROCESS_ZOMBIE);
    leave_scheduler(cpu);
    thread->pid = pid;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(observe_exec, struct task_struct *task)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state)
        return 0;
    bpf_local_irq_save(&flags);
    struct observed_cpu *cpu = started_cpu(state);
    struct observed *thread = bpf_task_storage_get(&observed, task, 0, 0);
    if (thread && thread->pid != (uint32_t)task->pid && thread->pid == cpu->current)
        change_pid(cpu, thread, (uint32_t)task->pid);
    bpf_local_irq_restore(&flags);
    return 0;
}

#endif
