/* SPDX-License-Identifier: MIT */

/*
 * The context switch, and its causes. A CPU picks again in reschedule(): when its process blocks,
 * ends or yields, when a tick or a wake-up asks for it, and when it is idle. The run queue stays
 * locked over the switch, and the next process unlocks it (scheduler_finish_switch). So no CPU can
 * pick the previous process before its registers are saved.
 */

#include "scheduler/scheduler.h"
#include "scheduler/policy_times.h"

#include "abi/errors.h"
#include "device/device_tree.h"
#include "lib/panic.h"
#include "lib/string.h"
#include "memory/address_space.h"
#include "policies/support/attributes.h"
#include "policies/support/cpu_set.h"
#include "process/owners.h"
#include "scheduler/events.h"
#include "scheduler/idle_cpus.h"
#include "scheduler/run_queue.h"
#include "scheduler/tasks.h"
#include "time/clock.h"
#include "trace/trace.h"
#include "trap/csr.h"
#include "trap/trap.h"

_Static_assert(sizeof(struct switch_frame) == 14 * 8, "scheduler/switch.S knows this layout");

void switch_context(struct switch_frame *from, const struct switch_frame *to);

static bool idle_cpus_scan; /* the boot argument `scan` */
static bool changes_wait;   /* the boot argument `changes-wait` */

void scheduler_init(void)
{
    run_queues_init();
    idle_cpus_scan = boot_argument_number("scan", 0) != 0;
    changes_wait = boot_argument_number("changes-wait", 0) != 0;
}

void scheduler_request(struct cpu *cpu, enum preempt_reason reason)
{
    /* The end of a slice is the stronger reason: it decides where the process is queued. */
    if (!(cpu->reschedule && cpu->reschedule_reason == PREEMPT_SLICE))
        cpu->reschedule_reason = reason;
    __atomic_store_n(&cpu->reschedule, true, __ATOMIC_RELEASE);
    if (cpu != this_cpu())
        cpu_interrupt(cpu);
}

/* The process has just been queued by the CPU that it leaves. It goes elsewhere if it may no
 * longer run there, or if the policy requested it. */
static __attribute__((noinline)) void expel_if_due(struct queue *queue, struct process *process)
{
    struct cpu *cpu = this_cpu();
    if (cpu->moves != process && task_may_run_on(&process->task, cpu->id))
        return;
    cpu->moves = NULL;
    queue_remove(queue, process);
    cpu->expelled = true;
    cpu->after_switch = true;
}

/* The process gives up the CPU: it returns to the queue if it is still runnable. */
static void leave(struct queue *queue, struct process *process, enum stop_reason stop,
                  enum enqueue_reason reason)
{
    struct cpu *cpu = this_cpu();
    kernel_assert(process->on_cpu && cpu->occupied);
    task_count_run_time(&process->task, queue->view.now);
    cpu->occupied = false;
    run_queue_leave(policy, &queue->view, &process->task, stop);
    if (stop != STOP_RUNNABLE)
        return;
    queue_add(queue, process, reason);
    if (process->task.cpus || cpu->moves == process)
        expel_if_due(queue, process);
}

/* The process gets the CPU. */
static void enter(struct queue *queue, struct process *process)
{
    struct cpu *cpu = this_cpu();
    uint64_t now = queue->view.now;
    kernel_assert(process == cpu->current || !process->on_cpu);
    process->state = PROCESS_RUNNING;
    process->on_cpu = true;
    process->waiting_time += now - process->task.queued_since;
    run_queue_enter(&queue->view, &process->task);
    __atomic_store_n(&process->task.cpu, cpu->id, __ATOMIC_RELAXED);
    if (process->task.selections == 1)
        process->first_run = now;
    cpu->occupied = true;
}

static void count_switch(struct cpu *cpu, struct process *next, bool voluntary)
{
    struct process *previous = cpu->current;
    if (previous && voluntary)
        previous->voluntary_switches++;
    else if (previous)
        previous->involuntary_switches++;
    if (next) {
        cpu->context_switches++;
        cpu->idle_time += previous ? 0 : clock_now() - cpu->idle_since;
    } else {
        cpu->idle_switches++;
        cpu->idle_since = clock_now();
    }
}

static void record_decision(const struct queue *queue, const struct process *next)
{
    if (next && queue->view.remark)
        trace_record(TRACE_DECISION, pid_of(next), queue->view.queued, queue->view.remark);
}

static void end_scheduling(struct cpu *cpu)
{
    uint64_t cycles = clock_cycles();
    cpu->scheduler_cycles += cycles - cpu->enter_cycles;
    trace_record(TRACE_SCHEDULER_EXIT, pid_of(cpu->current), 0, cycles);
}

/* Queues a process elsewhere that has left this CPU. */
static void queue_expelled(struct cpu *cpu, struct process *process)
{
    cpu->expelled = false;
    spinlock_acquire(&process->lock);
    scheduler_add(process, ENQUEUE_MOVED);
    spinlock_release(&process->lock);
}

/* Does the rare work after a switch. The queue is unlocked. */
static __attribute__((noinline)) void do_after_switch(struct cpu *cpu, struct process *previous)
{
    cpu->after_switch = false;
    if (cpu->still)
        still_cpu_end(cpu);
    if (cpu->expelled)
        queue_expelled(cpu, previous);
}

/* Part of each decision, so it is inlined into the function that decides. */
static inline __attribute__((always_inline)) void finish_switch(struct cpu *cpu)
{
    struct process *previous = cpu->previous;
    /* Must precede unlocking the queue: after that another CPU may run the process. */
    if (previous)
        __atomic_store_n(&previous->on_cpu, false, __ATOMIC_RELEASE);
    end_scheduling(cpu);
    queue_unlock(cpu->locked_queue);
    if (cpu->after_switch)
        do_after_switch(cpu, previous);
}

void scheduler_finish_switch(void)
{
    finish_switch(this_cpu());
}

/* Switches to another process, or to the idle loop (null). Returns when the current process runs
 * again. */
static void switch_to(struct queue *queue, struct process *next)
{
    struct cpu *cpu = this_cpu();
    struct process *previous = cpu->current;
    trace_record(TRACE_SWITCH, pid_of(next), pid_of(previous),
                 previous ? (uint64_t)previous->state : 0);
    cpu->previous = previous;
    cpu->current = next;
    cpu->locked_queue = queue;
    address_space_activate(next ? &next->space : NULL);
    switch_context(previous ? &previous->switch_frame : &cpu->idle_frame,
                   next ? &next->switch_frame : &cpu->idle_frame);
    finish_switch(this_cpu());
}

/* Picks again. The current process leaves as given by `stop` and `reason`. */
static void reschedule(enum stop_reason stop, enum enqueue_reason reason, bool voluntary)
{
    struct cpu *cpu = this_cpu();
    struct process *previous = cpu->current;
    enum preempt_reason why = cpu->reschedule_reason;
    kernel_assert(!cpu->held);
    cpu->enter_cycles = clock_cycles();
    trace_record(TRACE_SCHEDULER_ENTER, pid_of(previous), 0, cpu->enter_cycles);

    struct queue *queue = queue_lock(cpu->id);
    cpu->reschedule = false;
    if (previous)
        leave(queue, previous, stop, reason);
    bool passed_on =
        reason == ENQUEUE_EXPIRED && idle_cpus_scan && scheduler_pass_on(queue, previous);
    struct process *next = passed_on ? NULL : queue_pick(queue, cpu->id);
    /* A pull unlocks the queue for a moment: even if it brought none, a process may have come. */
    while (!next && scheduler.queues > 1 &&
           (queue_pull(&queue, cpu->id, true) || queue_waits(queue)))
        next = queue_pick(queue, cpu->id);
    record_decision(queue, next);
    policy_times_set_turn(cpu, next ? queue->view.turn_end : 0);
    if (next)
        enter(queue, next);
    idle_cpu_set(cpu, !next);
    if (next == previous) {
        end_scheduling(cpu);
        queue_unlock(queue);
        return;
    }
    if (previous && !voluntary)
        trace_record(TRACE_PREEMPT, pid_of(previous), why, 0);
    count_switch(cpu, next, voluntary);
    switch_to(queue, next);
}

void scheduler_block(void)
{
    struct process *process = current_process();
    trace_record(TRACE_BLOCK, pid_of(process), process->reason, 0);
    reschedule(STOP_BLOCKED, ENQUEUE_WOKEN, true);
}

void scheduler_yield(void)
{
    trace_record(TRACE_YIELD, pid_of(current_process()), 0, 0);
    reschedule(STOP_RUNNABLE, ENQUEUE_YIELDED, true);
}

void scheduler_preempt(void)
{
    bool expired = this_cpu()->reschedule_reason == PREEMPT_SLICE;
    reschedule(STOP_RUNNABLE, expired ? ENQUEUE_EXPIRED : ENQUEUE_PREEMPTED, false);
}

_Noreturn void scheduler_end(void)
{
    reschedule(STOP_ENDED, ENQUEUE_WOKEN, true);
    panic("a process that has ended runs again");
}

void scheduler_forget(struct process *process)
{
    struct queue *queue = queue_lock(process->task.cpu);
    kernel_assert(!process->queued && !process->on_cpu);
    if (queue_knows(process))
        policy_exit_task(policy, &scheduler, &process->task);
    queue_unlock(queue);
}

_Noreturn void scheduler_idle(void)
{
    struct cpu *cpu = this_cpu();
    cpu->idle_since = clock_now();
    idle_cpu_set(cpu, true);
    cpu->reschedule = true;
    for (;;) {
        interrupts_serve();
        if (__atomic_exchange_n(&cpu->look, false, __ATOMIC_ACQUIRE) && cpu->still) {
            still_cpu_end(cpu);
            scheduler_look_for_work(cpu);
        }
        if (cpu->reschedule)
            reschedule(STOP_BLOCKED, ENQUEUE_WOKEN, true);
        else
            wait_for_interrupt();
    }
}

/* Queues a process again that was taken out to be changed. */
static void put_back(struct queue *queue, struct process *process)
{
    queue_add(queue, process, ENQUEUE_MOVED);
    scheduler_announce(queue, process);
}

/* Prepares a process for a change. Returns its queue, locked; a queued process is taken out. */
static struct queue *begin_change(struct process *process, bool *queued)
{
    struct queue *queue = queue_lock_of_process(process);
    *queued = process->queued;
    if (*queued)
        queue_remove(queue, process);
    return queue;
}

static void end_change(struct queue *queue, struct process *process, bool queued)
{
    bool stays = task_may_run_on(&process->task, process->task.cpu);
    run_queue_changed(policy, &queue->view, &process->task);
    if (queued && stays)
        put_back(queue, process);
    else if (process->on_cpu && !(changes_wait && stays))
        scheduler_request(&cpus[process->task.cpu], PREEMPT_POLICY);
    queue_unlock(queue);
    if (queued && !stays)
        scheduler_add(process, ENQUEUE_MOVED);
    owners_changed(process);
}

int scheduler_set_attribute(struct process *process, enum attribute_kind kind, int64_t value)
{
    bool queued;
    if (!attribute_allowed(kind, value))
        return -ERANGE;
    struct queue *queue = begin_change(process, &queued);
    trace_record(TRACE_ATTRIBUTE, pid_of(process), kind, (uint64_t)value);
    STORE_ATTRIBUTE(&process->task, kind, value);
    end_change(queue, process, queued);
    return 0;
}

/* ---- CPU sets of processes ---- */

bool scheduler_affinity_used;

int scheduler_set_affinity(struct process *process, const struct cpu_set *cpus)
{
    bool queued;
    struct cpu_set set = *cpus;
    uint32_t count = cpu_set_limit(&set, scheduler.cpus);
    if (count == 0)
        return -EINVAL;
    struct queue *queue = begin_change(process, &queued);
    for (uint32_t word = 0; word * 64 < scheduler.cpus; word++)
        trace_record(TRACE_AFFINITY, pid_of(process), word, set.words[word]);
    cpu_set_give(&process->task, &process->cpus, &set, count, scheduler.cpus);
    if (process->task.cpus)
        __atomic_store_n(&scheduler_affinity_used, true, __ATOMIC_RELAXED);
    end_change(queue, process, queued);
    return 0;
}

struct cpu_set scheduler_affinity(const struct process *process)
{
    struct cpu_set set;
    if (process->task.cpus)
        return process->cpus;
    memset(&set, 0xff, sizeof(set));
    cpu_set_limit(&set, scheduler.cpus);
    return set;
}

void scheduler_inherit_affinity(struct process *child)
{
    struct process *parent = current_process();
    spinlock_acquire(&parent->lock);
    if (parent->task.cpus) {
        child->cpus = parent->cpus;
        child->task.cpus = &child->cpus;
    }
    spinlock_release(&parent->lock);
}

void scheduler_waiters_changed(struct process *owner)
{
    struct queue *queue = queue_lock_of_process(owner);
    bool again = run_queue_waiters_changed(policy, &queue->view, &owner->task);
    if (again && owner->queued && !owner->urgent) {
        queue_remove(queue, owner);
        put_back(queue, owner);
    } else if (again && owner->on_cpu) {
        scheduler_request(&cpus[owner->task.cpu], PREEMPT_POLICY);
    }
    queue_unlock(queue);
}

/* owners_lock keeps the lent values of waiters and the active policy unchanged. */
struct queue *scheduler_begin_choice(void)
{
    spinlock_acquire(&owners_lock);
    return queue_lock(this_cpu()->id);
}

struct process *scheduler_choose_waiter(struct queue *queue, struct process *chosen,
                                        struct process *waiter)
{
    return process_of(run_queue_choose_waiter(policy, &queue->view, chosen ? &chosen->task : NULL,
                                              &waiter->task));
}

void scheduler_end_choice(struct queue *queue)
{
    queue_unlock(queue);
    spinlock_release(&owners_lock);
}

void scheduler_set_urgent(enum urgency urgent)
{
    struct process *process = current_process();
    struct queue *queue = queue_lock_of_process(process);
    if (urgent)
        queue_forget(queue, process);
    else if (process->urgent)
        scheduler_request(this_cpu(), PREEMPT_POLICY);
    process->urgent = urgent;
    queue_unlock(queue);
}

uint64_t scheduler_time_slice(const struct process *process)
{
    struct queue *queue = queue_lock_of_process(process);
    uint64_t ticks = queue_knows(process) ? policy->time_slice(&scheduler, &process->task) : 0;
    queue_unlock(queue);
    return ticks;
}

uint64_t scheduler_tickets(const struct process *process)
{
    struct queue *queue = queue_lock_of_process(process);
    uint64_t tickets = policy_tickets(policy, &scheduler, &process->task);
    queue_unlock(queue);
    return tickets;
}
