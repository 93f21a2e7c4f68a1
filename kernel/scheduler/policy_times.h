/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_POLICY_TIMES_H
#define KERNEL_SCHEDULER_POLICY_TIMES_H

#include "scheduler/cpu.h"
#include "time/tick.h"

struct queue;

/*
 * The times that a policy sets: the end of a turn, which only its CPU knows, and the alarm of a
 * queue, which the CPU of the queue's number serves. The earlier of the two contributes to the
 * CPU's timer (time/timer.c). A policy that sets neither pays for a few comparisons: the rest is
 * out of the common path.
 */

__attribute__((cold, noinline)) void policy_times_change_turn(struct cpu *cpu, uint64_t turn_end);
__attribute__((cold, noinline)) void policy_times_call(struct cpu *cpu, uint64_t now);
__attribute__((cold, noinline)) void policy_times_hear_now(struct cpu *cpu);

/* Handles a changed alarm of the queue: its CPU programs its timer, or is interrupted to do so.
 * The queue is locked. */
__attribute__((cold, noinline)) void policy_times_record(struct queue *queue);

/* Sets the end of the current process's turn on this CPU; 0: none. */
static inline void policy_times_set_turn(struct cpu *cpu, uint64_t turn_end)
{
    if (__builtin_expect(turn_end != cpu->turn_end, 0))
        policy_times_change_turn(cpu, turn_end);
}

/* Handles an interrupt from another CPU, which may be about an alarm. */
static inline void policy_times_hear(struct cpu *cpu)
{
    if (__atomic_load_n(&cpu->alarm, __ATOMIC_RELAXED) != cpu->alarm_heard)
        policy_times_hear_now(cpu);
}

/* Calls the policy for times up to `now`, in an interrupt of this CPU. */
static inline void policy_times_expire(struct cpu *cpu, uint64_t now)
{
    if (__builtin_expect(cpu->policy_time <= now, 0))
        policy_times_call(cpu, now);
}

#endif
