/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Watches Linux's scheduler, with any class or policy, and writes the event trace
 * (docs/trace-format.md, docs/linux-trace.md). It also copies a thread's attributes to its forked
 * threads, traced or not.
 *
 * The trace's data about a thread is kept in that thread's storage (`observed`). An unknown thread
 * is introduced by FOUND before any other record names it. Three contexts write to that storage:
 *
 *   - at a switch, the CPU that switches, which holds its run queue's lock;
 *   - at a wake-up, the waker, which holds the thread's pi_lock;
 *   - `find_tasks`, which holds no lock: see introduce().
 *
 * Each program keeps interrupts off from its first record to its last.
 *
 * A thread that is preempted inside a program keeps the kernel from running that program for other
 * threads of its CPU (bpf_prog_info.recursion_misses). So all essential events are watched where
 * interrupts are off already. A missed end or name is recorded later (end_running(),
 * observe_switch()), and a second program records a missed mark. What both miss, and missed yields,
 * count as lost (trace_end() of the loader).
 */

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "block_reason.h"
#include "observed_lives.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Wake-ups that no tracepoint reported. Tests expect none. */
uint64_t unexplained SEC(".data.unexplained");

SEC("tp_btf/sched_entry_tp")
int BPF_PROG(observe_entry)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state)
        return 0;
    bpf_local_irq_save(&flags);
    struct observed_cpu *cpu = started_cpu(state);
    cpu->forked_to = 0;
    enter_scheduler(cpu);
    bpf_local_irq_restore(&flags);
    return 0;
}

SEC("tp_btf/sched_exit_tp")
int BPF_PROG(observe_exit, bool switched)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state)
        return 0;
    bpf_local_irq_save(&flags);
    leave_scheduler(started_cpu(state));
    if (!switched)
        take_preempt_reason();
    bpf_local_irq_restore(&flags);
    return 0;
}

/* --- switches */

/* The running thread leaves and stays runnable: it has yielded, or is preempted. */
static void emit_stop(struct observed_cpu *cpu)
{
    uint32_t reason = take_preempt_reason();
    if (!cpu->yielded)
        trace_emit(TRACE_PREEMPT, cpu->current, reason ? reason : PREEMPT_SLICE, 0);
}

/* Writes why the current thread stops. Returns its state when it leaves. */
static uint32_t stop(struct observed_cpu *cpu, struct task_struct *task, bool preempted,
                     uint32_t state)
{
    if (cpu->ended) {
        take_preempt_reason();
        return PROCESS_ZOMBIE;
    }
    if (preempted || state == 0) {
        emit_stop(cpu);
        return PROCESS_RUNNABLE;
    }
    take_preempt_reason();
    if (state & STATE_DEAD) {
        emit_exit(cpu, task);
        return PROCESS_ZOMBIE;
    }
    trace_emit(TRACE_BLOCK, cpu->current, block_reason(task, state), 0);
    return PROCESS_BLOCKED;
}

/* A thread is about to run: the trace must first know it as runnable. Returns its PID; 0 if it
 * has ended for the trace. */
static uint32_t come(struct trace_state *state, struct task_struct *task, struct observed *thread)
{
    if (thread->state == PROCESS_ZOMBIE)
        return 0;
    if (thread->state == PROCESS_NEW)
        introduce(state, task, thread, PROCESS_RUNNABLE);
    if (thread->state == PROCESS_BLOCKED) {
        __sync_fetch_and_add(&unexplained, 1);
        trace_emit(TRACE_WAKEUP, thread->pid, 0, bpf_get_smp_processor_id());
    }
    thread->state = PROCESS_RUNNING;
    return thread->pid;
}

/* Interrupts are off, and the run queue is locked. */
SEC("tp_btf/sched_switch")
int BPF_PROG(observe_switch, bool preempted, struct task_struct *previous, struct task_struct *next,
             unsigned int previous_state)
{
    struct trace_state *state = trace_recording();
    if (!state)
        return 0;
    struct observed_cpu *cpu = started_cpu(state);
    struct observed *left = cpu->current ? observed_of(state, previous) : 0;
    if (left && !cpu->ended && is_renamed(left, previous))
        report_name(state, left, previous->comm, previous->flags);
    enter_scheduler(cpu);
    struct observed *entered = next->pid ? observed_of(state, next) : 0;
    uint32_t state_left = cpu->current ? stop(cpu, previous, preempted, previous_state) : 0;
    uint32_t pid = entered ? come(state, next, entered) : 0;
    if (pid != cpu->current)
        emit_switch(cpu, pid, state_left);
    /* Must be last: a waker that sees this state writes WAKEUP at once, and WAKEUP must follow
     * SWITCH. */
    if (left)
        *(volatile uint32_t *)&left->state = state_left;
    if (entered && entered->fresh) {
        /* A new thread returns from its first switch on another path, without sched_exit_tp. */
        entered->fresh = 0;
        leave_scheduler(cpu);
    }
    return 0;
}

/* --- wake-ups */

static bool is_delayed(struct task_struct *task)
{
    return bpf_core_field_exists(task->se.sched_delayed) && task->se.sched_delayed;
}

/* Returns true if a thread that the trace does not know yet is blocked. The caller holds its
 * pi_lock. */
static bool is_blocked(struct task_struct *task)
{
    return !task->on_cpu && (!task->on_rq || is_delayed(task));
}

static void wake(struct task_struct *task, struct observed *thread, uint32_t waker)
{
    if (__sync_val_compare_and_swap(&thread->state, PROCESS_BLOCKED, PROCESS_RUNNABLE) ==
        PROCESS_BLOCKED)
        trace_emit(TRACE_WAKEUP, thread->pid, waker, task->thread_info.cpu);
}

/*
 * A thread is about to be woken, and then waits for a CPU. If it has not left its CPU yet,
 * observe_woken() writes the wake-up, or the thread continues to run. Interrupts are off.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(observe_waking, struct task_struct *task)
{
    struct trace_state *state = trace_recording();
    if (!state || task->pid == 0)
        return 0;
    struct observed_cpu *cpu = started_cpu(state);
    cpu->requested_cpu = 0;
    cpu->forked_to = 0;
    if (!in_interrupt() && bpf_get_current_task_btf()->exit_state && !cpu->ended)
        end_running(state, cpu);
    struct observed *thread = observed_of(state, task);
    if (!thread)
        return 0;
    if (thread->state == PROCESS_NEW && is_blocked(task))
        introduce(state, task, thread, PROCESS_BLOCKED);
    thread->waker = actor();
    wake(task, thread, thread->waker);
    return 0;
}

/* If this CPU has just asked the CPU of `task` to pick again, the wake-up of `task` was the
 * reason. */
static void blame_wakeup(struct observed_cpu *cpu, struct task_struct *task)
{
    uint32_t target = task->thread_info.cpu;
    if (cpu->requested_cpu != target + 1)
        return;
    cpu->requested_cpu = 0;
    trace_preempt_reason(target, PREEMPT_WAKEUP);
}

/* The thread is on a run queue again. In most cases observe_waking() has already written its
 * wake-up. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(observe_woken, struct task_struct *task)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state || task->pid == 0)
        return 0;
    bpf_local_irq_save(&flags);
    struct observed_cpu *cpu = started_cpu(state);
    struct observed *thread = observed_of(state, task);
    if (thread) {
        if (thread->state == PROCESS_NEW && !task->on_cpu)
            introduce(state, task, thread, PROCESS_RUNNABLE);
        wake(task, thread, thread->waker);
        blame_wakeup(cpu, task);
    }
    bpf_local_irq_restore(&flags);
    return 0;
}

/*
 * A CPU is asked to pick again. Interrupts are off, and its run queue is locked. (No program may be
 * attached to the tracepoint for this, sched_set_need_resched_tp. Linux 7.3 also calls it on
 * leaving a BPF program, which would run the program again, endlessly.)
 */
static void note_request(struct rq *queue)
{
    uint32_t target = (uint32_t)queue->cpu;
    uint32_t *reason = bpf_map_lookup_elem(&preempt_reasons, &target);
    if (!reason || *reason || !trace_recording())
        return;
    struct observed_cpu *cpu = this_cpu();
    cpu->requested_cpu = target + 1;
    if (cpu->forked_to == target + 1)
        *reason = PREEMPT_WAKEUP;
    else if (in_hard_interrupt())
        *reason = PREEMPT_SLICE; /* the tick, unless observe_woken() finds a wake-up */
    else if (in_interrupt())
        *reason = PREEMPT_WAKEUP; /* balancing has brought another thread here */
    else
        *reason = PREEMPT_POLICY;
}

SEC("fentry/resched_curr")
int BPF_PROG(observe_request, struct rq *queue)
{
    note_request(queue);
    return 0;
}

/* A CPU is asked to pick again at the next tick, or before it returns to user mode. */
SEC("fentry/resched_curr_lazy")
int BPF_PROG(observe_lazy_request, struct rq *queue)
{
    note_request(queue);
    return 0;
}

/* --- records on behalf of programs */

static inline bool is_mark(int operation, unsigned long kind)
{
    return operation == TRACE_MARK_PRCTL && kind >= MARK_BEGIN && kind <= MARK_JOB;
}

static void emit_mark(struct trace_state *state, unsigned long kind, unsigned long value)
{
    struct observed_cpu *cpu = started_cpu(state);
    trace_emit(TRACE_MARK, cpu->current, (uint32_t)kind, value);
}

SEC("tp_btf/task_prctl_unknown")
int BPF_PROG(observe_mark, int operation, unsigned long kind, unsigned long value)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state || !is_mark(operation, kind))
        return 0;
    bpf_local_irq_save(&flags);
    struct observed *thread = bpf_task_storage_get(&observed, bpf_get_current_task_btf(), 0, 0);
    emit_mark(state, kind, value);
    if (thread)
        thread->marked = 1;
    bpf_local_irq_restore(&flags);
    return 0;
}

/* Runs after observe_mark(), and records the mark if that was missed. */
SEC("tp_btf/task_prctl_unknown")
int BPF_PROG(observe_missed_mark, int operation, unsigned long kind, unsigned long value)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state || !is_mark(operation, kind))
        return 0;
    bpf_local_irq_save(&flags);
    struct observed *thread = bpf_task_storage_get(&observed, bpf_get_current_task_btf(), 0, 0);
    if (thread && !thread->marked) {
        emit_mark(state, kind, value);
        __sync_fetch_and_add(&state->caught, 1);
    }
    if (thread)
        thread->marked = 0;
    bpf_local_irq_restore(&flags);
    return 0;
}

/* The compiler may have inlined this function: observer_fit() chooses what to attach this to. */
SEC("fentry/do_sched_yield")
int BPF_PROG(observe_yield)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state)
        return 0;
    bpf_local_irq_save(&flags);
    struct observed_cpu *cpu = started_cpu(state);
    cpu->yielded = 1;
    trace_emit(TRACE_YIELD, cpu->current, 0, 0);
    bpf_local_irq_restore(&flags);
    return 0;
}

/* --- requests of the loader */

/* Introduces each living thread that the trace does not know yet. */
SEC("iter/task")
int find_tasks(struct bpf_iter__task *context)
{
    unsigned long flags;
    struct task_struct *task = context->task;
    struct trace_state *state = trace_recording();
    if (!state || !task || task->pid == 0 || task->exit_state)
        return 0;
    if (task->on_cpu || (task->__state & (STATE_NEW | STATE_DEAD)))
        return 0; /* its CPU or its fork introduces it; a dead one needs no introduction */
    bpf_local_irq_save(&flags);
    started_cpu(state);
    struct observed *thread = observed_of(state, task);
    if (thread && thread->state == PROCESS_NEW)
        introduce(state, task, thread, is_blocked(task) ? PROCESS_BLOCKED : PROCESS_RUNNABLE);
    bpf_local_irq_restore(&flags);
    return 0;
}

/* Writes the text, starting at byte `from`, in as many TEXT records as needed. */
static void emit_text(const struct reported_event *event, uint32_t from)
{
    for (uint32_t i = 0; i < TOLD_TEXT / TEXT_BYTES; i++) {
        uint32_t at = from + i * TEXT_BYTES;
        if (at >= event->length || at > TOLD_TEXT - TEXT_BYTES)
            return;
        uint64_t second;
        uint32_t first;
        __builtin_memcpy(&second, event->text + at, 8);
        __builtin_memcpy(&first, event->text + at + 8, 4);
        trace_emit(TRACE_TEXT, 0, first, second);
    }
}

/* Starts this CPU, and writes the loader's record, if there is one. Returns 1 if it is written;
 * the end of its text may still be lost. */

SEC("syscall")
int emit_reported_event(struct reported_event *event)
{
    unsigned long flags;
    int written = 0;
    struct trace_state *state = trace_recording();
    if (!state)
        return 0;
    bpf_local_irq_save(&flags);
    started_cpu(state);
    if (event->kind)
        written = trace_emit(event->kind, event->process, event->first, event->second);
    if (event->kind == TRACE_POLICY)
        emit_text(event, TEXT_BYTES);
    else if (event->kind == TRACE_TUNABLE)
        emit_text(event, 0);
    bpf_local_irq_restore(&flags);
    return written;
}
