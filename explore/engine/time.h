/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_ENGINE_TIME_H
#define EXPLORE_ENGINE_TIME_H

/* Ends of time slices, alarms, and ticks. */

#include "explore/engine/queueing.h"

static void end_turn(uint32_t cpu, bool moved)
{
    if (setup.acting) {
        called[cpu] = expired[cpu] = true;
        moves[cpu] = moved;
        return;
    }
    struct member *left = leave(cpu, STOP_RUNNABLE);
    add(left, ENQUEUE_EXPIRED, NULL);
    if (!moved)
        return;
    take_out(left);
    make_runnable(left, ENQUEUE_MOVED, NULL);
}

static void obey(uint32_t cpu, enum tick_verdict verdict)
{
    if (verdict == TICK_KILL)
        end(leave(cpu, STOP_ENDED));
    else if (verdict != TICK_CONTINUE)
        end_turn(cpu, verdict == TICK_MOVE);
}

/* Calls the policy if a time has come that it set for this CPU: the end of a time slice, or an
 * alarm. */
static void policy_times(uint32_t cpu)
{
    struct run_queue *queue = queue_of(cpu);
    for (uint32_t calls = 0; queue->alarm && queue->alarm <= machine.now; calls++) {
        print_act(" alarm() of queue %u;", queue->cpu);
        if (calls > queue->queued)
            watch_broken("alarm() of a queue was called %u times at one time", calls);
        task_t *task = run_queue_alarm(policy, queue);
        if (task && setup.acting)
            announce(member_of(task));
    }
    struct member *member = running_on(cpu);
    if (!member || !machine.turn_end[cpu] || machine.turn_end[cpu] > machine.now)
        return;
    task_count_run_time(&member->task, machine.now);
    print_act(" turn_over(task %d) on CPU %u;", member->task.pid, cpu);
    enum tick_verdict verdict = run_queue_turn_over(policy, queue, &member->task);
    machine.turn_end[cpu] = queue->turn_end;
    obey(cpu, verdict);
}

static uint64_t next_policy_time(void)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        uint64_t turn_end = machine.turn_end[cpu];
        uint64_t alarm = machine.queues[queue_number(cpu)].alarm;
        next = turn_end && turn_end < next ? turn_end : next;
        next = alarm && alarm < next ? alarm : next;
    }
    return next;
}

static void pass_until(uint64_t until)
{
    uint64_t next;
    while ((next = next_policy_time()) < until) {
        machine.now = next > machine.now ? next : machine.now;
        for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++)
            policy_times(cpu);
        settle(machine.scheduler.cpus);
    }
    machine.now = until;
}

static void tick_on(uint32_t cpu)
{
    policy_times(cpu);
    struct member *member = running_on(cpu);
    if (!member) {
        called[cpu] = setup.acting;
        return;
    }
    struct run_queue *queue = queue_of(cpu);
    task_count_run_time(&member->task, machine.now);
    enum tick_verdict verdict = run_queue_tick(policy, queue, &member->task);
    print_act(" tick(task %d) says %s;", member->task.pid,
              verdict == TICK_CONTINUE  ? "CONTINUE"
              : verdict == TICK_PREEMPT ? "PREEMPT"
              : verdict == TICK_MOVE    ? "MOVE"
                                        : "KILL");
    if (queue->turn_end)
        machine.turn_end[cpu] = queue->turn_end;
    if (member->known) {
        member->ticks += law.counts_ticks;
        if (law.of_tick && !going_on)
            law.of_tick(queue, member, verdict);
    }
    if (setup.acting) {
        push(cpu);
        pull(cpu, false);
    } else {
        policy_push(policy, &machine.scheduler, cpu);
        policy_balance(policy, &machine.scheduler, cpu, false);
    }
    obey(cpu, verdict);
}

#endif
