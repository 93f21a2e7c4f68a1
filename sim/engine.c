/* SPDX-License-Identifier: MIT */

/*
 * The scheduler's mechanism, in the parts of sim/engine/, and the order of events. This file is
 * compiled once for each policy. The policy's source precedes it, so the compiler can inline the
 * hooks. ENGINE is the engine's name, and POLICY is the policy's name.
 *
 * It follows kernel/scheduler/ function by function, without locks, because events here are
 * sequential. docs/simulator.md has the order of events.
 */

#include <string.h>

#include "sim/engine/ticks.h"

#include "sim/engine/order.h"
#include "sim/engine/outside.h"

/* ---- starting and ending the policy (as kernel/scheduler/run_queue.c) ---- */

static void install(struct simulator *simulator)
{
    struct scheduler *scheduler = &simulator->scheduler;
    memset(simulator->scheduler_state, 0, sizeof(simulator->scheduler_state));
    for (uint32_t slot = 0; slot < simulator->most_processes; slot++)
        drop_waiters(&process_at(simulator, slot)->task);
    policy_init_scheduler(policy, scheduler);
    scheduler->queues = policy_run_queues(policy, scheduler);
    for (uint32_t i = 0; i < scheduler->cpus; i++) {
        simulator->queues[i].now = policy_now(simulator);
        run_queue_begin(policy, scheduler, &simulator->queues[i], i);
        simulator->cpus[i].turn_end = NEVER;
        simulator->cpus[i].alarm = NEVER;
    }
    for (uint32_t i = 0; i < scheduler->cpus; i++)
        queue_of(simulator, i)->running += simulator->cpus[i].current != NULL;
}

static uint32_t drain(struct simulator *simulator)
{
    uint32_t first = NOBODY;
    uint32_t *end = &first;
    simulator->scheduler.ending = true;
    for (uint32_t cpu = 0; cpu < simulator->scheduler.cpus; cpu++) {
        struct process *process;
        while ((process = queue_pick(simulator, queue_of(simulator, cpu), cpu))) {
            *end = process->task.slot;
            end = &process->link;
        }
    }
    *end = NOBODY;
    simulator->scheduler.ending = false;
    return first;
}

static void adopt(struct simulator *simulator, uint32_t acting_cpu, uint32_t first)
{
    while (first != NOBODY) {
        struct process *process = process_at(simulator, first);
        first = process->link;
        queue_add(simulator, acting_cpu, queue_of(simulator, process->task.cpu), process,
                  ENQUEUE_ADOPTED, NULL);
    }
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++)
        call(simulator, acting_cpu, i, PREEMPT_POLICY);
}

static void start(struct simulator *simulator, struct process *process)
{
    struct run_queue *queue = queue_of(simulator, 0);
    record(simulator, 0, TRACE_FORK, NULL, pid_of(process), 0);
    queue_add(simulator, 0, queue, process, ENQUEUE_NEW, NULL);
    announce(simulator, 0, queue, process);
}

/* ---- actions from outside ---- */

static void outside_migrate(struct simulator *simulator, struct process *process, uint32_t cpu)
{
    struct run_queue *queue = queue_of(simulator, process->task.cpu);
    queue_remove(simulator, OUTSIDE, queue, process);
    change_cpu(simulator, OUTSIDE, process, cpu);
    queue = queue_of(simulator, cpu);
    queue_add(simulator, OUTSIDE, queue, process, ENQUEUE_MOVED, NULL);
    announce(simulator, OUTSIDE, queue, process);
}

const struct engine ENGINE = {
    .policy = &POLICY,
    .run = run,
    .install = install,
    .drain = drain,
    .adopt = adopt,
    .start = start,
    .fork = outside_fork,
    .kill = outside_kill,
    .wake = outside_wake,
    .migrate = outside_migrate,
    .give = outside_give,
    .set_attribute = outside_set_attribute,
};
