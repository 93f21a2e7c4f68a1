/* SPDX-License-Identifier: MIT */

/* A CPU's work at its tick. */

#include "lib/print.h"
#include "process/lifecycle.h"
#include "scheduler/events.h"
#include "scheduler/idle_cpus.h"
#include "scheduler/policy_times.h"
#include "scheduler/run_queue.h"
#include "scheduler/scheduler.h"
#include "scheduler/tasks.h"
#include "trace/trace.h"

/* Rare: no policy needs it, though one may do it by mistake. */
static __attribute__((noinline)) void kill_for_policy(struct process *process, const char *hook)
{
    if (process_is_first(process) || process->killed)
        return;
    print("pid %d (%s) ended by policy %s: its %s returned TICK_KILL\n", process->pid,
          process->name, policy->name, hook);
    process_mark_killed(process);
}

void scheduler_obey(struct cpu *cpu, struct process *process, enum tick_verdict verdict,
                    const char *hook)
{
    cpu->moves = verdict == TICK_MOVE ? process : NULL;
    if (verdict == TICK_PREEMPT || verdict == TICK_MOVE)
        scheduler_request(cpu, PREEMPT_SLICE);
    else if (verdict != TICK_CONTINUE)
        kill_for_policy(process, hook);
}

static void tick_process(struct cpu *cpu, struct process *process)
{
    struct queue *queue = queue_lock(cpu->id);
    task_count_run_time(&process->task, queue->view.now);
    enum tick_verdict verdict = run_queue_tick(policy, &queue->view, &process->task);
    if (queue->view.turn_end)
        policy_times_set_turn(cpu, queue->view.turn_end);
    bool waits = queue_waits(queue);
    queue_unlock(queue);
    if (waits)
        still_cpus_call();
    if (verdict != TICK_CONTINUE)
        scheduler_obey(cpu, process, verdict, "tick()");
}

/* Gives one of this CPU's waiting processes to another CPU. */
static void tick_push(const struct cpu *cpu)
{
    struct queue *queue;
    struct process *moved = queue_push(&queue, cpu->id);
    if (!moved)
        return;
    scheduler_announce(queue, moved);
    queue_unlock(queue);
}

/* Takes a process from another CPU, if the policy requests it. (An idle CPU looks for one when
 * it picks.) */
static void tick_balance(struct cpu *cpu)
{
    struct queue *queue = queue_lock(cpu->id);
    struct process *moved = queue_pull(&queue, cpu->id, false);
    if (!moved) {
        spinlock_release(&queue->lock); /* no locked hook of this queue was called */
        return;
    }
    scheduler_announce(queue, moved);
    queue_unlock(queue);
}

bool scheduler_look_for_work(struct cpu *cpu)
{
    bool has_match = queue_has_work(cpu->id);
    if (has_match)
        scheduler_request(cpu, PREEMPT_WAKEUP);
    return has_match;
}

/* CPU 0 always has ticks: it ends the machine at its limit. */
static bool become_still(struct cpu *cpu)
{
    if (cpu->id == 0 || trace_needs_ticks() || queues_wait())
        return false;
    still_cpu_begin(cpu);
    return true;
}

bool scheduler_tick(void)
{
    struct cpu *cpu = this_cpu();
    if (!cpu->current)
        return scheduler_look_for_work(cpu) || !become_still(cpu);
    tick_process(cpu, cpu->current);
    tick_push(cpu);
    tick_balance(cpu);
    return true;
}
