/* SPDX-License-Identifier: MIT */

/*
 * The context switch, and what leads to one. A CPU picks again in reschedule():
 * when its process blocks, ends or yields, when a tick or a wake-up asks for it,
 * and when it is idle. The run queue stays locked over the switch, and the next
 * process unlocks it (scheduler_finish_switch): so nobody can pick the previous
 * one before its registers are put away.
 */

#include "scheduler/scheduler.h"

#include "abi/errors.h"
#include "lib/panic.h"
#include "memory/address_space.h"
#include "policies/support/attributes.h"
#include "policies/support/preemption.h"
#include "process/lifecycle.h"
#include "scheduler/events.h"
#include "scheduler/run_queue.h"
#include "scheduler/tasks.h"
#include "time/tick.h"
#include "trace/trace.h"
#include "trap/csr.h"
#include "trap/trap.h"

_Static_assert(sizeof(struct switch_frame) == 14 * 8, "scheduler/switch.S knows this layout");

void switch_context(struct switch_frame *from, const struct switch_frame *to);

#define WORD_CPUS 64

/* A bit for each CPU in the idle loop; a hint, read without a lock. */
static uint64_t idle_cpus[CPUS_MAX / WORD_CPUS];
_Static_assert(CPUS_MAX <= POLICY_CPUS_MAX, "a policy can count all CPUs");

/*
 * A bit for each CPU whose ticks have stopped, because it is idle and no process
 * waits anywhere. A CPU that has its tick while processes wait in its queue calls
 * them: so none of them misses more than that tick.
 */
static uint64_t still_cpus[CPUS_MAX / WORD_CPUS];

static uint32_t pid_of(const struct process *process)
{
    return process ? (uint32_t)process->pid : 0;
}

void scheduler_init(void)
{
    run_queues_init();
}

void scheduler_request(struct cpu *cpu, enum preempt_reason reason)
{
    /* The end of a slice is the better reason: it decides where the process is queued. */
    if (!(cpu->reschedule && cpu->reschedule_reason == PREEMPT_SLICE))
        cpu->reschedule_reason = reason;
    __atomic_store_n(&cpu->reschedule, true, __ATOMIC_RELEASE);
    if (cpu != this_cpu())
        cpu_interrupt(cpu);
}

static void set_idle(const struct cpu *cpu, bool idle)
{
    uint64_t *word = &idle_cpus[cpu->id / WORD_CPUS];
    uint64_t bit = 1ul << cpu->id % WORD_CPUS;
    if (idle)
        __atomic_or_fetch(word, bit, __ATOMIC_RELAXED);
    else
        __atomic_and_fetch(word, ~bit, __ATOMIC_RELAXED);
}

/* Returns the lowest idle CPU, or NO_CPU if none is idle. */
static uint32_t lowest_idle(void)
{
    for (uint32_t first = 0; first < scheduler.cpus; first += WORD_CPUS) {
        uint64_t idle = __atomic_load_n(&idle_cpus[first / WORD_CPUS], __ATOMIC_RELAXED);
        if (idle)
            return first + (uint32_t)__builtin_ctzl(idle);
    }
    return NO_CPU;
}

/* Returns true if the CPU was idle and had not been called yet. It counts as called now. */
static bool claim_idle(uint32_t cpu)
{
    uint64_t *word = &idle_cpus[cpu / WORD_CPUS];
    uint64_t bit = 1ul << cpu % WORD_CPUS;
    return (__atomic_load_n(word, __ATOMIC_RELAXED) & bit) &&
           (__atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED) & bit);
}

/* Counts the time that the current process has run. Its run queue is locked. */
static void account(struct cpu *cpu, uint64_t now)
{
    if (cpu->current)
        cpu->current->task.run_time += now - cpu->accounted;
    cpu->accounted = now;
}

/* The process gives up the CPU: back into the queue if it is still runnable. */
static void leave(struct queue *queue, struct process *process, enum stop_reason stop,
                  enum enqueue_reason reason)
{
    struct cpu *cpu = this_cpu();
    kernel_assert(process->on_cpu && cpu->occupied);
    account(cpu, queue->view.now);
    cpu->occupied = false;
    run_queue_leave(policy, &queue->view, &process->task, stop);
    if (stop == STOP_RUNNABLE)
        queue_add(queue, process, reason);
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
    cpu->accounted = now;
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

static void end_stillness(struct cpu *cpu)
{
    cpu->still = false;
    __atomic_and_fetch(&still_cpus[cpu->id / WORD_CPUS], ~(1ul << cpu->id % WORD_CPUS),
                       __ATOMIC_RELAXED);
    tick_resume();
}

void scheduler_finish_switch(void)
{
    struct cpu *cpu = this_cpu();
    struct process *previous = cpu->previous;
    /* Comes before the queue is unlocked: from then on another CPU may run the process. */
    if (previous)
        __atomic_store_n(&previous->on_cpu, false, __ATOMIC_RELEASE);
    end_scheduling(cpu);
    queue_unlock(cpu->locked_queue);
    if (cpu->still)
        end_stillness(cpu);
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
    scheduler_finish_switch();
}

/* Picks again. The current process leaves as `stop` and `reason` say. */
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
    struct process *next = queue_pick(queue, cpu->id);
    /* A pull unlocks the queue for a moment: even if it brought none, a process may have come. */
    while (!next && (queue_pull(&queue, cpu->id, true) || queue_waits(queue)))
        next = queue_pick(queue, cpu->id);
    record_decision(queue, next);
    if (next)
        enter(queue, next);
    set_idle(cpu, !next);
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

/* ---- what policies/support/preemption.h asks for ---- */

MECHANISM_FUNCTION const task_t *task_on_cpu(const scheduler_t *unused, uint32_t cpu)
{
    const struct process *process = cpus[cpu].occupied ? cpus[cpu].current : NULL;
    (void)unused;
    return process ? &process->task : NULL;
}

MECHANISM_FUNCTION bool task_may_run_on(const task_t *task, uint32_t cpu)
{
    (void)task;
    (void)cpu;
    return true;
}

MECHANISM_FUNCTION bool task_is_urgent(const task_t *task)
{
    return process_of(task)->urgent;
}

MECHANISM_FUNCTION bool claim_idle_cpu(const scheduler_t *unused, uint32_t cpu)
{
    (void)unused;
    return claim_idle(cpu);
}

MECHANISM_FUNCTION uint32_t claim_lowest_idle_cpu(const scheduler_t *unused, const task_t *task)
{
    (void)unused;
    (void)task;
    uint32_t cpu;
    while ((cpu = lowest_idle()) != NO_CPU && !claim_idle(cpu))
        ;
    return cpu;
}

/* Calls the CPU that should run, or take, a process that was queued. */
static void announce(struct queue *queue, const struct process *process)
{
    uint32_t cpu = find_cpu_to_call(policy, &queue->view, &process->task);
    if (cpu != NO_CPU)
        scheduler_request(&cpus[cpu], PREEMPT_WAKEUP);
}

/* The process's own CPU gives way, unless that is busy and another one is idle. */
static uint32_t choose_cpu_for_urgent(const struct process *process)
{
    uint32_t own = process->task.cpu;
    uint64_t word = __atomic_load_n(&idle_cpus[own / WORD_CPUS], __ATOMIC_RELAXED);
    uint32_t idle = word & 1ul << own % WORD_CPUS ? own : lowest_idle();
    return idle == NO_CPU ? own : idle;
}

/* The first process begins where the machine boots, since no other CPU runs before it does. */
static uint32_t choose_cpu(const struct process *process, enum enqueue_reason reason)
{
    if (process_is_first(process) && reason == ENQUEUE_NEW)
        return this_cpu()->id;
    return process->urgent ? choose_cpu_for_urgent(process) : queue_place(process, reason);
}

void scheduler_add(struct process *process, enum enqueue_reason reason)
{
    struct cpu *cpu = this_cpu();
    uint32_t from = process->task.cpu;
    uint32_t to = choose_cpu(process, reason);
    struct queue *queue = queue_lock(to);
    __atomic_store_n(&process->task.cpu, to, __ATOMIC_RELAXED);
    if (reason == ENQUEUE_WOKEN) {
        trace_record(TRACE_WAKEUP, pid_of(process), cpu->serving ? 0 : pid_of(cpu->current), to);
        if (from != to)
            trace_record(TRACE_MIGRATE, pid_of(process), from, to);
    }
    queue_add(queue, process, reason);
    announce(queue, process);
    queue_unlock(queue);
}

void scheduler_forget(struct process *process)
{
    struct queue *queue = queue_lock(process->task.cpu);
    kernel_assert(!process->queued && !process->on_cpu);
    if (queue_knows(process))
        policy_exit_task(policy, &scheduler, &process->task);
    queue_unlock(queue);
}

/* CPUs without ticks look whether they may take one of the processes that wait. */
static void call_still_cpus(void)
{
    for (uint32_t first = 0; first < scheduler.cpus; first += WORD_CPUS) {
        uint64_t *word = &still_cpus[first / WORD_CPUS];
        uint64_t called = __atomic_load_n(word, __ATOMIC_RELAXED);
        if (called)
            called = __atomic_exchange_n(word, 0, __ATOMIC_RELAXED);
        for (; called; called &= called - 1) {
            struct cpu *cpu = &cpus[first + (uint32_t)__builtin_ctzl(called)];
            __atomic_store_n(&cpu->look, true, __ATOMIC_RELEASE);
            cpu_interrupt(cpu);
        }
    }
}

static void tick_process(struct cpu *cpu, struct process *process)
{
    struct queue *queue = queue_lock(cpu->id);
    account(cpu, queue->view.now);
    enum tick_verdict verdict = TICK_CONTINUE;
    if (queue_knows(process))
        verdict = policy->tick(&queue->view, &process->task);
    bool waits = queue_waits(queue);
    queue_unlock(queue);
    if (waits)
        call_still_cpus();
    if (verdict == TICK_KILL && !process_is_first(process))
        process_mark_killed(process);
    if (verdict == TICK_PREEMPT)
        scheduler_request(cpu, PREEMPT_SLICE);
}

/* Gives one of this CPU's waiting processes to another CPU. */
static void tick_push(const struct cpu *cpu)
{
    struct queue *queue;
    struct process *moved = queue_push(&queue, cpu->id);
    if (!moved)
        return;
    announce(queue, moved);
    queue_unlock(queue);
}

/* Takes a process from another CPU, if the policy says so. (An idle CPU looks for one when it
 * picks.) */
static void tick_balance(struct cpu *cpu)
{
    struct queue *queue = queue_lock(cpu->id);
    struct process *moved = queue_pull(&queue, cpu->id, false);
    if (moved)
        announce(queue, moved);
    queue_unlock(queue);
}

static bool look_for_work(struct cpu *cpu)
{
    bool found = queue_has_work(cpu->id);
    if (found)
        scheduler_request(cpu, PREEMPT_WAKEUP);
    return found;
}

/* CPU 0 always has ticks: it ends the machine at its limit. */
static bool become_still(struct cpu *cpu)
{
    if (cpu->id == 0 || trace_needs_ticks() || queues_wait())
        return false;
    cpu->still = true;
    __atomic_or_fetch(&still_cpus[cpu->id / WORD_CPUS], 1ul << cpu->id % WORD_CPUS,
                      __ATOMIC_RELAXED);
    return true;
}

bool scheduler_tick(void)
{
    struct cpu *cpu = this_cpu();
    if (!cpu->current)
        return look_for_work(cpu) || !become_still(cpu);
    tick_process(cpu, cpu->current);
    tick_push(cpu);
    tick_balance(cpu);
    return true;
}

_Noreturn void scheduler_idle(void)
{
    struct cpu *cpu = this_cpu();
    cpu->idle_since = clock_now();
    set_idle(cpu, true);
    cpu->reschedule = true;
    for (;;) {
        interrupts_serve();
        if (__atomic_exchange_n(&cpu->look, false, __ATOMIC_ACQUIRE) && cpu->still) {
            end_stillness(cpu);
            look_for_work(cpu);
        }
        if (cpu->reschedule)
            reschedule(STOP_BLOCKED, ENQUEUE_WOKEN, true);
        else
            wait_for_interrupt();
    }
}

int scheduler_set_attribute(struct process *process, enum attribute_kind kind, int64_t value)
{
    if (!attribute_allowed(kind, value))
        return -ERANGE;
    struct queue *queue = queue_lock_of_process(process);
    bool queued = process->queued;
    trace_record(TRACE_ATTRIBUTE, pid_of(process), kind, (uint64_t)value);
    if (queued)
        queue_remove(queue, process);
    STORE_ATTRIBUTE(&process->task, kind, value);
    if (queued) {
        queue_add(queue, process, ENQUEUE_MOVED);
        announce(queue, process);
    } else if (process->on_cpu) {
        scheduler_request(&cpus[process->task.cpu], PREEMPT_POLICY);
    }
    queue_unlock(queue);
    return 0;
}

void scheduler_set_urgent(bool urgent)
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
