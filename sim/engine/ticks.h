/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_TICKS_H
#define SIM_ENGINE_TICKS_H

/* Ticks, and the times that the policy set, as in kernel/time/timer.c. */

#include "sim/engine/acts.h"

/* Moves one of the CPU's waiting processes to another CPU, if the policy pushes. */
static inline void tick_push(struct simulator *simulator, uint32_t cpu)
{
    if (queue_of(simulator, cpu)->queued == 0)
        return;
    uint32_t to = policy_push(policy, &simulator->scheduler, cpu);
    struct process *moved = to == NO_CPU ? NULL : move(simulator, cpu, cpu, to);
    if (moved)
        announce(simulator, cpu, queue_of(simulator, to), moved);
}

/* Moves waiting processes of other CPUs to this CPU, if the policy balances. */
static inline void tick_balance(struct simulator *simulator, uint32_t cpu)
{
    struct process *moved = simulator->queued > 0 ? queue_pull(simulator, cpu, false) : NULL;
    if (moved)
        announce(simulator, cpu, queue_of(simulator, cpu), moved);
}

/* Ends the process's time slice, if the verdict requires it. */
static inline void end_by_verdict(struct simulator *simulator, struct cpu *cpu,
                                  enum tick_verdict verdict)
{
    if (verdict != TICK_PREEMPT && verdict != TICK_MOVE)
        return;
    cpu->moves = verdict == TICK_MOVE;
    call(simulator, cpu->id, cpu->id, PREEMPT_SLICE);
}

/* Kills a process if the verdict requires it, but never the first process. */
static inline void kill_by_verdict(struct process *process, enum tick_verdict verdict)
{
    if (verdict == TICK_KILL && process->task.slot != FIRST_SLOT)
        process->killed = true;
}

static inline void tick(struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    if (!process) {
        if (queue_has_work(simulator, cpu->id))
            call(simulator, cpu->id, cpu->id, PREEMPT_WAKEUP);
        return;
    }
    if (simulator->speeds)
        review_level(simulator, cpu);
    struct run_queue *queue = queue_of(simulator, cpu->id);
    simulator->counts.ticks++;
    cpu->resumes += simulator->costs.tick;
    bool is_new =
        (policy->turn_over || simulator->costs.bursts_first) && cpu->entered == simulator->now;
    enum tick_verdict verdict =
        is_new ? TICK_CONTINUE : run_queue_tick(policy, queue, &process->task);
    if (queue->turn_end)
        note_turn_end(simulator, cpu, queue->turn_end);
    hooks_called(simulator, cpu->id, queue);
    end_by_verdict(simulator, cpu, verdict);
    tick_push(simulator, cpu->id);
    tick_balance(simulator, cpu->id);
    kill_by_verdict(process, verdict);
    if (process->killed)
        end_process(simulator, cpu, -1);
}

/* ---- times that the policy set ---- */

/* Calls the policy's alarm. A CPU is notified of each process that may run again, as of a process
 * that was just queued. */
static void ring(struct simulator *simulator, const struct cpu *cpu)
{
    struct run_queue *queue = queue_of(simulator, cpu->id);
    for (uint32_t left = queue->queued + 1; left > 0; left--) {
        if (!queue->alarm || queue->alarm > queue->now)
            break;
        task_t *task = run_queue_alarm(policy, queue);
        if (task)
            announce(simulator, cpu->id, queue, process_of(task));
    }
    hooks_called(simulator, cpu->id, queue);
}

static void end_turn(struct simulator *simulator, struct cpu *cpu)
{
    struct process *process = cpu->current;
    struct run_queue *queue = queue_of(simulator, cpu->id);
    cpu->resumes += simulator->costs.tick;
    enum tick_verdict verdict = run_queue_turn_over(policy, queue, &process->task);
    note_turn_end(simulator, cpu, queue->turn_end);
    hooks_called(simulator, cpu->id, queue);
    end_by_verdict(simulator, cpu, verdict);
    kill_by_verdict(process, verdict);
}

/* Calls the policy if a time that it has set is reached. */
static inline void expire_policy_times(struct simulator *simulator, struct cpu *cpu)
{
    if (cpu->alarm <= simulator->now)
        ring(simulator, cpu);
    if (cpu->turn_end <= simulator->now)
        end_turn(simulator, cpu);
}

#endif
