/* SPDX-License-Identifier: MIT */

#include "scheduler/policy_times.h"

#include "scheduler/events.h"
#include "scheduler/run_queue.h"
#include "scheduler/tasks.h"

static uint64_t or_never(uint64_t time)
{
    return time ? time : NO_POLICY_TIME;
}

static void set_policy_time(struct cpu *cpu)
{
    uint64_t turn_end = or_never(cpu->turn_end);
    uint64_t alarm = or_never(cpu->alarm_heard);
    cpu->policy_time = turn_end < alarm ? turn_end : alarm;
}

void policy_times_change_turn(struct cpu *cpu, uint64_t turn_end)
{
    cpu->turn_end = turn_end;
    set_policy_time(cpu);
    tick_program();
}

void policy_times_hear_now(struct cpu *cpu)
{
    cpu->alarm_heard = __atomic_load_n(&cpu->alarm, __ATOMIC_RELAXED);
    set_policy_time(cpu);
    tick_program();
}

/* A CPU that is not notified of a cancelled or postponed alarm checks once without effect. */
void policy_times_record(struct queue *queue)
{
    struct cpu *cpu = &cpus[queue->view.cpu];
    uint64_t before = queue->alarm_recorded;
    queue->alarm_recorded = queue->view.alarm;
    __atomic_store_n(&cpu->alarm, queue->view.alarm, __ATOMIC_RELAXED);
    if (cpu == this_cpu())
        policy_times_hear_now(cpu);
    else if (queue->view.alarm && queue->view.alarm < or_never(before))
        cpu_interrupt(cpu);
}

/* The policy may immediately set the end of the process's next turn. */
static void end_turn(struct cpu *cpu, struct process *process)
{
    struct queue *queue = queue_lock(cpu->id);
    task_count_run_time(&process->task, queue->view.now);
    enum tick_verdict verdict = run_queue_turn_over(policy, &queue->view, &process->task);
    policy_times_change_turn(cpu, queue->view.turn_end);
    queue_unlock(queue);
    if (verdict != TICK_CONTINUE)
        scheduler_obey(cpu, process, verdict, "turn_over()");
}

/* Announces each process that may run again, like a process that was just queued. A queue never
 * announces more processes than it holds. */
static void ring(const struct cpu *cpu)
{
    struct queue *queue = queue_lock(cpu->id);
    for (uint32_t left = queue->view.queued + 1; left > 0; left--) {
        if (!queue->view.alarm || queue->view.alarm > queue->view.now)
            break;
        task_t *task = run_queue_alarm(policy, &queue->view);
        if (task)
            scheduler_announce(queue, process_of(task));
    }
    queue_unlock(queue);
}

void policy_times_call(struct cpu *cpu, uint64_t now)
{
    policy_times_hear_now(cpu);
    if (cpu->alarm_heard && cpu->alarm_heard <= now)
        ring(cpu);
    if (cpu->turn_end && cpu->turn_end <= now)
        end_turn(cpu, cpu->current);
}
