/* SPDX-License-Identifier: MIT */

/* Chooses the CPU whose queue a runnable process joins, and the CPU to notify. */

#include "scheduler/bad_cpu.h"

#include "policies/random.h"
#include "policies/support/preemption.h"
#include "process/lifecycle.h"
#include "scheduler/events.h"
#include "scheduler/idle_cpus.h"
#include "scheduler/run_queue.h"
#include "scheduler/scheduler.h"
#include "scheduler/tasks.h"
#include "trace/trace.h"

MECHANISM_FUNCTION const task_t *task_on_cpu(const scheduler_t *unused, uint32_t cpu)
{
    const struct process *process = cpus[cpu].occupied ? cpus[cpu].current : NULL;
    (void)unused;
    return process ? &process->task : NULL;
}

MECHANISM_FUNCTION bool task_is_urgent(const task_t *task)
{
    return process_of(task)->urgent;
}

MECHANISM_FUNCTION bool claim_idle_cpu(const scheduler_t *unused, uint32_t cpu)
{
    (void)unused;
    return idle_cpu_claim(cpu);
}

MECHANISM_FUNCTION uint32_t claim_lowest_idle_cpu(const scheduler_t *unused, const task_t *task)
{
    (void)unused;
    uint32_t cpu;
    while ((cpu = idle_cpu_lowest(task->cpus)) != NO_CPU && !idle_cpu_claim(cpu))
        ;
    return cpu;
}

void scheduler_announce(struct queue *queue, const struct process *process)
{
    uint32_t cpu = find_cpu_to_call(policy, &queue->view, &process->task);
    if (cpu != NO_CPU)
        scheduler_request(&cpus[cpu], PREEMPT_WAKEUP);
}

void scheduler_call_idle(const struct process *process)
{
    uint32_t cpu = claim_lowest_idle_cpu(&scheduler, &process->task);
    if (cpu != NO_CPU)
        scheduler_request(&cpus[cpu], PREEMPT_WAKEUP);
}

/* Returns the idle CPU with this number among the CPUs of the process, or NO_CPU. */
static uint32_t idle_cpu_at(const struct process *process, uint64_t number)
{
    for (uint32_t cpu = 0; cpu < scheduler.cpus; cpu++) {
        if (cpu_is_idle(cpu) && task_may_run_on(&process->task, cpu) && number-- == 0)
            return cpu;
    }
    return NO_CPU;
}

bool scheduler_pass_on(const struct queue *queue, const struct process *process)
{
    static uint64_t draws; /* changed with the queue locked */
    random_state_t random = scheduler.seed ^ draws++ << 32;
    uint64_t idle = 0;
    if (scheduler.queues > 1 || queue->view.queued != 1 || !list_empty(&queue->urgent))
        return false;
    while (idle_cpu_at(process, idle) != NO_CPU)
        idle++;
    uint32_t cpu = idle_cpu_at(process, random_splitmix(&random) % (idle + 1));
    if (cpu == NO_CPU || !idle_cpu_claim(cpu))
        return false;
    scheduler_request(&cpus[cpu], PREEMPT_WAKEUP);
    return true;
}

/* Preempts on the process's own CPU, unless that is busy and another one is idle. */
static uint32_t choose_cpu_for_urgent(const struct process *process)
{
    uint32_t home = allowed_cpu(&scheduler, &process->task, process->task.cpu);
    uint32_t idle = cpu_is_idle(home) ? home : idle_cpu_lowest(process->task.cpus);
    return idle == NO_CPU ? home : idle;
}

/* The first process starts on the boot CPU, because no other CPU runs before it does. */
static uint32_t choose_cpu(const struct process *process, enum enqueue_reason reason)
{
    if (process_is_first(process) && reason == ENQUEUE_NEW)
        return this_cpu()->id;
    return process->urgent ? choose_cpu_for_urgent(process) : queue_place(process, reason);
}

/* Returns true if the policy has hooks that may be called for a blocked process. */
static bool may_call_blocked(void)
{
    return policy->leave || scheduler.follows_waits;
}

/* Discards the policy's data about a blocked process in its queue before the process is in
 * another one. No hook is called for it in the old queue while it joins the new one. */
static void leave_queue(struct process *process, uint32_t to)
{
    struct queue *queue = queue_lock(process->task.cpu);
    run_queue_forget(policy, &queue->view, &process->task);
    __atomic_store_n(&process->task.cpu, to, __ATOMIC_RELAXED);
    queue_unlock(queue);
}

void scheduler_add(struct process *process, enum enqueue_reason reason)
{
    struct cpu *cpu = this_cpu();
    uint32_t from = process->task.cpu;
    uint32_t to = choose_cpu(process, reason);
    if (from != to && reason == ENQUEUE_WOKEN && may_call_blocked())
        leave_queue(process, to);
    struct queue *queue = queue_lock(to);
    __atomic_store_n(&process->task.cpu, to, __ATOMIC_RELAXED);
    if (reason == ENQUEUE_WOKEN) {
        process->task.waker = (int32_t)(cpu->serving ? 0 : pid_of(cpu->current));
        process->task.waker_cpu = cpu->id;
        trace_record(TRACE_WAKEUP, pid_of(process), (uint32_t)process->task.waker, to);
    }
    if (from != to && reason != ENQUEUE_NEW)
        trace_record(TRACE_MIGRATE, pid_of(process), from, to);
    queue_add(queue, process, reason);
    scheduler_announce(queue, process);
    queue_unlock(queue);
}
