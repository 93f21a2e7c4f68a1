/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Watches Linux's scheduler, whatever class or policy runs, and writes the event
 * trace (docs/trace-format.md, docs/linux-trace.md). It also hands a thread's
 * attributes on to those that it forks, traced or not.
 *
 * What the trace knows of a thread is kept in that thread's storage (`observed`).
 * A thread that the trace does not know yet is introduced by FOUND before any other
 * record names it. Three write to that storage:
 *
 *   - at a switch, the CPU that switches, which holds its run queue's lock;
 *   - at a wake-up, the waker, which holds the thread's pi_lock;
 *   - `find_tasks`, which holds no lock: see introduce().
 *
 * Each program keeps interrupts off from its first record to its last.
 */

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "shared.h"
#include "trace_emit.h"

#include "block_reason.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* What the trace knows of a CPU. Only that CPU touches it. */
struct observed_cpu {
    uint32_t started;   /* 1: its START is written */
    uint32_t current;   /* the running thread's PID; 0: idle */
    uint32_t inside;    /* 1: the scheduler was entered, and not left */
    uint32_t yielded;   /* 1: the running thread has yielded since it was switched to */
    uint32_t asked;     /* the CPU that was last asked to pick again from here, + 1 */
    uint32_t forked_to; /* the CPU for which a thread was last forked here, + 1 */
    uint32_t padding[10];
};

static struct observed_cpu observed_cpus[HOST_CPUS];

/* True if the kernel has the tracepoints sched_entry_tp and sched_exit_tp; the loader sets it. */
const volatile bool told_visits;

/* Wake-ups that no tracepoint reported. Tests expect none. */
uint64_t unexplained SEC(".data.unexplained");

static struct observed_cpu *this_cpu(void)
{
    return &observed_cpus[bpf_get_smp_processor_id() & (HOST_CPUS - 1)];
}

/* --- where the CPU is */

#ifdef __TARGET_ARCH_x86
extern const int __preempt_count __ksym __weak;
#endif

/*
 * The fields of the preempt count. The field of hard interrupts is bits 16 to 19. Kernels
 * that count disabled interrupts there have it in bits 24 to 27, which are 0 in all other
 * kernels: so the first hard interrupt shows which kind of kernel this is.
 */
#define COUNT_SOFT_INTERRUPT  0x00000100u
#define COUNT_INTERRUPTS      0x000f0000u
#define COUNT_INTERRUPTS_HIGH 0x0f000000u

static bool counts_high;

static uint32_t preempt_count(void)
{
#ifdef __TARGET_ARCH_x86
    if (bpf_ksym_exists(&__preempt_count)) {
        const int *count = bpf_this_cpu_ptr(&__preempt_count);
        return (uint32_t)*count;
    }
#endif
    return 0;
}

/* Returns true in the handler of a hard interrupt. */
static bool in_hard_interrupt(void)
{
    uint32_t count = preempt_count();
    if (count & COUNT_INTERRUPTS_HIGH) {
        if (!counts_high)
            counts_high = true;
        return true;
    }
    return !counts_high && (count & COUNT_INTERRUPTS);
}

/* Returns true in the handler of a hard or of a soft interrupt. */
static bool in_interrupt(void)
{
    return in_hard_interrupt() || (preempt_count() & COUNT_SOFT_INTERRUPT);
}

/* Returns the PID of the thread that causes what happens now; 0 in an interrupt, which acts for no
 * thread. */
static uint32_t actor(void)
{
    return in_interrupt() ? 0 : this_cpu()->current;
}

/* --- entries of several records */

#define TEXT_BYTES 12 /* of a record: eight in `second`, then four in `first` */

static __always_inline void fill_text(struct trace_record *record, uint64_t time, uint32_t sequence,
                                      uint32_t kind, uint32_t process, const uint8_t *text)
{
    uint64_t second;
    uint32_t first;
    __builtin_memcpy(&second, text, 8);
    __builtin_memcpy(&first, text + 8, 4);
    trace_fill(record, time, sequence, kind, process, first, second);
}

/* A thread's name as it is usually written: a kernel thread's is in brackets. */
#define NAME_BYTES (2 * TEXT_BYTES)
struct name {
    uint8_t text[NAME_BYTES];
};

static __attribute__((noinline)) int read_name(struct name *name, const char *from, uint32_t flags)
{
    __builtin_memset(name, 0, sizeof(*name));
    if (!(flags & THREAD_OF_KERNEL)) {
        bpf_probe_read_kernel_str(name->text, HOST_NAME, from);
        return 0;
    }
    long length = bpf_probe_read_kernel_str(name->text + 1, HOST_NAME, from);
    if (length < 1 || length > HOST_NAME)
        return 0;
    name->text[0] = '[';
    name->text[length] = ']';
    return 0;
}

static uint32_t thread_of(struct task_struct *task)
{
    return task->tgid == task->pid ? 0 : (uint32_t)task->tgid;
}

static void emit_attribute(uint32_t pid, enum attribute_kind kind, uint64_t value)
{
    trace_emit(TRACE_ATTRIBUTE, pid, kind, value);
}

/* Writes the attributes that were set before the trace began. */
static void emit_attributes(struct task_struct *task, uint32_t pid)
{
    struct task_attributes *set = bpf_task_storage_get(&attributes, task, 0, 0);
    if (!set || !set->set)
        return;
    emit_attribute(pid, ATTRIBUTE_PRIORITY, (uint64_t)(int64_t)set->priority);
    emit_attribute(pid, ATTRIBUTE_TICKETS, set->tickets);
    emit_attribute(pid, ATTRIBUTE_WEIGHT, set->weight);
}

#define FOUND_RECORDS 3

/*
 * Introduces a thread that lived before the trace, by FOUND and its name. Two CPUs may
 * find it at the same time: one of them wins. Returns true on that CPU. The records'
 * sequence numbers and time are taken before the winner is decided, so that every other
 * record of the thread comes after them. The CPU that loses writes LOST of no records
 * into its room instead.
 */
static __attribute__((noinline)) bool introduce(struct trace_state *state, struct task_struct *task,
                                                struct observed *thread, uint32_t now)
{
    struct name name;
    read_name(&name, task->comm, task->flags);
    struct trace_record *records = trace_reserve(state, FOUND_RECORDS);
    uint32_t sequence = records ? trace_numbers(state, FOUND_RECORDS) : 0;
    uint64_t time = bpf_ktime_get_boot_ns();
    thread->pid = (uint32_t)task->pid;
    bool won = __sync_val_compare_and_swap(&thread->state, PROCESS_NEW, now) == PROCESS_NEW;
    if (records && won) {
        trace_fill(&records[0], time, sequence, TRACE_FOUND, thread->pid, now, thread_of(task));
        fill_text(&records[1], time, sequence + 1, TRACE_TEXT, thread->pid, name.text);
        fill_text(&records[2], time, sequence + 2, TRACE_TEXT, thread->pid, name.text + TEXT_BYTES);
    } else if (records) {
        for (uint32_t i = 0; i < FOUND_RECORDS; i++)
            trace_fill(&records[i], time, sequence + i, TRACE_LOST, 0, 0, 0);
    }
    if (records)
        bpf_ringbuf_submit(records, BPF_RB_NO_WAKEUP);
    if (won)
        emit_attributes(task, thread->pid);
    return won;
}

#define EXEC_RECORDS 2

static void emit_name(struct trace_state *state, uint32_t pid, const char *from, uint32_t flags)
{
    struct name name;
    read_name(&name, from, flags);
    struct trace_record *records = trace_reserve(state, EXEC_RECORDS);
    if (!records)
        return;
    uint32_t sequence = trace_numbers(state, EXEC_RECORDS);
    uint64_t time = bpf_ktime_get_boot_ns();
    fill_text(&records[0], time, sequence, TRACE_EXEC, pid, name.text);
    fill_text(&records[1], time, sequence + 1, TRACE_TEXT, pid, name.text + TEXT_BYTES);
    bpf_ringbuf_submit(records, BPF_RB_NO_WAKEUP);
}

/* Returns what the trace knows of a thread, or null if there was no memory for it. */
static struct observed *observed_of(struct trace_state *state, struct task_struct *task)
{
    struct observed *thread =
        bpf_task_storage_get(&observed, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!thread)
        __sync_fetch_and_add(&state->lost, 1);
    return thread;
}

/* --- the scheduler's way from one thread to the next */

static void enter_scheduler(struct observed_cpu *cpu)
{
    if (!told_visits || cpu->inside)
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
}

/*
 * Writes START, and the thread that runs here: even at sched_switch, that is still the
 * current one. If another CPU has already introduced it, as a thread that waits, the
 * trace switches to it.
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

/* Returns why this CPU was asked to pick again, and forgets it; PREEMPT_NONE if it was not asked.
 */
#define PREEMPT_NONE 0
static uint32_t take_preempt_reason(void)
{
    uint32_t key = bpf_get_smp_processor_id();
    uint32_t *said = bpf_map_lookup_elem(&preempt_reasons, &key);
    if (!said)
        return PREEMPT_NONE;
    uint32_t reason = *said;
    *said = PREEMPT_NONE;
    return reason;
}

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

/* Returns the status that a parent sees: the argument of exit(), or minus the signal that killed
 * the task. */
static uint32_t exit_status(struct task_struct *task)
{
    uint32_t code = (uint32_t)task->exit_code;
    return code & 0x7f ? -(code & 0x7f) : (code >> 8) & 0xff;
}

/* Writes why the current thread stops. Returns the state in which it leaves. */
static uint32_t stop(struct observed_cpu *cpu, struct task_struct *task, bool preempted,
                     uint32_t state)
{
    if (preempted || state == 0) {
        emit_stop(cpu);
        return PROCESS_RUNNABLE;
    }
    take_preempt_reason();
    if (state & STATE_DEAD) {
        trace_emit(TRACE_EXIT, cpu->current, exit_status(task), 0);
        return PROCESS_ZOMBIE;
    }
    trace_emit(TRACE_BLOCK, cpu->current, block_reason(task, state), 0);
    return PROCESS_BLOCKED;
}

/* A thread is about to run: the trace must know it as runnable first. Returns its PID. */
static uint32_t come(struct trace_state *state, struct task_struct *task, struct observed *thread)
{
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
    enter_scheduler(cpu);
    struct observed *left = cpu->current ? observed_of(state, previous) : 0;
    struct observed *entered = next->pid ? observed_of(state, next) : 0;
    uint32_t state_left = cpu->current ? stop(cpu, previous, preempted, previous_state) : 0;
    uint32_t pid = entered ? come(state, next, entered) : 0;
    if (pid != cpu->current)
        emit_switch(cpu, pid, state_left);
    /* Comes last: a waker that sees this state writes WAKEUP at once, which must follow SWITCH. */
    if (left)
        *(volatile uint32_t *)&left->state = state_left;
    if (entered && entered->fresh) {
        /* A new thread returns from its first switch by another way, which has no sched_exit_tp. */
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
 * A thread is going to be woken: from here on it waits for a CPU. If it has not left its
 * CPU yet, observe_woken() writes the wake-up, or the thread goes on running.
 * Interrupts are off.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(observe_waking, struct task_struct *task)
{
    struct trace_state *state = trace_recording();
    if (!state || task->pid == 0)
        return 0;
    struct observed_cpu *cpu = started_cpu(state);
    cpu->asked = 0;
    cpu->forked_to = 0;
    struct observed *thread = observed_of(state, task);
    if (!thread)
        return 0;
    if (thread->state == PROCESS_NEW && is_blocked(task))
        introduce(state, task, thread, PROCESS_BLOCKED);
    thread->waker = actor();
    wake(task, thread, thread->waker);
    return 0;
}

/* If this CPU has just asked the CPU of `task` to pick again, the wake-up of `task` was the reason.
 */
static void blame_wakeup(struct observed_cpu *cpu, struct task_struct *task)
{
    uint32_t target = task->thread_info.cpu;
    if (cpu->asked != target + 1)
        return;
    cpu->asked = 0;
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
 * A CPU is asked to pick again. Interrupts are off, and its run queue is locked. (No program may
 * be attached to the tracepoint for this, sched_set_need_resched_tp: Linux 7.3 also calls it on
 * leaving a BPF program, which would run the program again, without end.)
 */
static void note_request(struct rq *queue)
{
    uint32_t target = (uint32_t)queue->cpu;
    uint32_t *said = bpf_map_lookup_elem(&preempt_reasons, &target);
    if (!said || *said || !trace_recording())
        return;
    struct observed_cpu *cpu = this_cpu();
    cpu->asked = target + 1;
    if (cpu->forked_to == target + 1)
        *said = PREEMPT_WAKEUP;
    else if (in_hard_interrupt())
        *said = PREEMPT_SLICE; /* the tick, unless observe_woken() finds that it was a wake-up */
    else if (in_interrupt())
        *said = PREEMPT_WAKEUP; /* balancing has brought another thread here */
    else
        *said = PREEMPT_POLICY;
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

/* --- threads begin, move, and change */

static bool same_name(struct task_struct *one, struct task_struct *other)
{
    uint64_t names[2][HOST_NAME / 8] = {{0, 0}, {0, 0}};
    bpf_probe_read_kernel_str(names[0], HOST_NAME, one->comm);
    bpf_probe_read_kernel_str(names[1], HOST_NAME, other->comm);
    return names[0][0] == names[1][0] && names[0][1] == names[1][1] &&
           ((one->flags ^ other->flags) & THREAD_OF_KERNEL) == 0;
}

/* Writes FORK of a new thread, once. Interrupts are off. */
static void tell_fork(struct trace_state *state, struct task_struct *task)
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
    if (parent == 0 || !same_name(task, bpf_get_current_task_btf()))
        emit_name(state, thread->pid, task->comm, task->flags);
}

/* A new thread has become runnable. Interrupts are off. */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(observe_fork, struct task_struct *task)
{
    struct trace_state *state = trace_recording();
    if (!state || task->pid == 0)
        return 0;
    tell_fork(state, task);
    this_cpu()->forked_to = task->thread_info.cpu + 1;
    return 0;
}

/* A new thread is about to be queued. Attached only if the trace has records of queues: FORK must
 * come before the thread's first QUEUED. */
SEC("fentry/wake_up_new_task")
int BPF_PROG(observe_fork_before_it_is_queued, struct task_struct *task)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state || task->pid == 0)
        return 0;
    bpf_local_irq_save(&flags);
    tell_fork(state, task);
    bpf_local_irq_restore(&flags);
    return 0;
}

/* A child inherits its parent's attributes before a policy queues it for the first time. */
SEC("tp_btf/task_newtask")
int BPF_PROG(inherit_attributes, struct task_struct *task)
{
    struct task_struct *parent = bpf_get_current_task_btf();
    struct task_attributes *given = bpf_task_storage_get(&attributes, parent, 0, 0);
    if (!given || !given->set)
        return 0;
    struct task_attributes *own =
        bpf_task_storage_get(&attributes, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (own)
        *own = *given;
    return 0;
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
    if (thread && thread->state != PROCESS_NEW)
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
    if (thread && thread->state != PROCESS_NEW)
        emit_name(state, thread->pid, name, task->flags);
    bpf_local_irq_restore(&flags);
    return 0;
}

/*
 * A thread that calls exec() and is not the first of its process takes the first one's
 * PID; all its other threads have ended. In the trace, the caller forks a process of
 * that PID, and ends.
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

/* --- what programs say */

SEC("tp_btf/task_prctl_unknown")
int BPF_PROG(observe_mark, int operation, unsigned long kind, unsigned long value)
{
    unsigned long flags;
    struct trace_state *state = trace_recording();
    if (!state || operation != TRACE_MARK_PRCTL || kind < MARK_BEGIN || kind > MARK_VALUE)
        return 0;
    bpf_local_irq_save(&flags);
    struct observed_cpu *cpu = started_cpu(state);
    trace_emit(TRACE_MARK, cpu->current, (uint32_t)kind, value);
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

/* --- what the loader asks for */

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

/* Writes the text from byte `from` on, in as many TEXT records as it needs. */
static void emit_text(const struct trace_told *told, uint32_t from)
{
    for (uint32_t i = 0; i < TOLD_TEXT / TEXT_BYTES; i++) {
        uint32_t at = from + i * TEXT_BYTES;
        if (at >= told->length || at > TOLD_TEXT - TEXT_BYTES)
            return;
        uint64_t second;
        uint32_t first;
        __builtin_memcpy(&second, told->text + at, 8);
        __builtin_memcpy(&first, told->text + at + 8, 4);
        trace_emit(TRACE_TEXT, 0, first, second);
    }
}

/* Starts this CPU, and writes the loader's record, if there is one. Returns 1 if it is written; the
 * end of its text may be lost even so. */

SEC("syscall")
int tell(struct trace_told *told)
{
    unsigned long flags;
    int written = 0;
    struct trace_state *state = trace_recording();
    if (!state)
        return 0;
    bpf_local_irq_save(&flags);
    started_cpu(state);
    if (told->kind)
        written = trace_emit(told->kind, told->process, told->first, told->second);
    if (told->kind == TRACE_POLICY)
        emit_text(told, TEXT_BYTES);
    else if (told->kind == TRACE_TUNABLE)
        emit_text(told, 0);
    bpf_local_irq_restore(&flags);
    return written;
}
