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

/* ---- the next event ---- */

/* Runs the ticks of a moment: the tick of one CPU or, if ticks are simultaneous, the ticks of all
 * CPUs. One tick and all its consequences are finished before the next tick. */
static void tick_next(struct simulator *simulator)
{
    uint32_t cpus = simulator->scheduler.cpus;
    simulator->now = simulator->next_tick;
    do {
        uint32_t i = simulator->ticking;
        set_next_tick(simulator, i + 1);
        simulator->ticked = simulator->next_tick == simulator->now ? i + 1 : cpus;
        interrupt(simulator, &simulator->cpus[i], true);
        settle(simulator, i);
    } while (simulator->next_tick == simulator->now);
}

/* Runs the expired timers of one CPU, between ticks. */
static void expire(struct simulator *simulator)
{
    struct cpu *cpu = &simulator->cpus[timer_cpu(&simulator->timers.heap[0])];
    simulator->now = simulator->timers.heap[0].when;
    if (timers_await_tick(simulator, cpu)) {
        take_due(simulator, cpu);
        plan(simulator, cpu);
        return;
    }
    interrupt(simulator, cpu, false);
    settle(simulator, cpu->id);
}

/* Runs the next action of CPU `i`, between ticks. */
static void happen(struct simulator *simulator, uint32_t i)
{
    struct cpu *cpu = &simulator->cpus[i];
    simulator->now = events_next(simulator);
    bool acts = cpu->calls || acts_first(simulator, cpu, simulator->now);
    if (!acts && (cpu->late || policy_time(simulator, cpu, NEVER) <= simulator->now))
        interrupt(simulator, cpu, false);
    else if (acts || !cpu->reschedule || cpu->called > simulator->now)
        act_on(simulator, cpu);
    if (simulator->engine == &ENGINE)
        settle(simulator, i);
}

/* Skips the ticks of idle CPUs until the next timer, because nothing happens before it. Returns
 * false if there is no timer. */
static bool skip_idle_ticks(struct simulator *simulator)
{
    uint64_t timer = timers_next(&simulator->timers);
    if (timer == NEVER)
        fail(simulator, "deadlock: all processes wait, and nothing can wake one");
    else if (timer > simulator->next_tick)
        seek_tick(simulator, timer);
    return timer != NEVER;
}

/* Returns the first CPU whose process acts before a tick or timer of the same time, or NO_CPU. */
static __attribute__((noinline)) uint32_t cpu_that_acts_first(const struct simulator *simulator,
                                                              uint64_t when)
{
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        if (acts_first(simulator, &simulator->cpus[i], when))
            return i;
    }
    return NO_CPU;
}

/* Returns the CPU with the next action, or NO_CPU if a tick or a timer comes before it. A tick or
 * timer precedes actions of the same time, except as acts_first() says. */
static inline uint32_t cpu_before_interrupts(const struct simulator *simulator, uint64_t timer,
                                             uint64_t event)
{
    uint64_t interrupt = timer < simulator->next_tick ? timer : simulator->next_tick;
    if (event < interrupt)
        return events_first_cpu(simulator);
    bool may = policy->turn_over || simulator->costs.bursts_first;
    return event == interrupt && may ? cpu_that_acts_first(simulator, event) : NO_CPU;
}

static void run(struct simulator *simulator, uint64_t until)
{
    settle(simulator, NO_CPU);
    while (simulator->status == SIMULATOR_TIME && simulator->engine == &ENGINE) {
        uint64_t event = events_next(simulator);
        uint64_t timer = timers_next(&simulator->timers);
        bool idle = simulator->busy == 0 && simulator->queued == 0 && event == NEVER;
        if (idle && !skip_idle_ticks(simulator))
            return;
        uint32_t cpu = cpu_before_interrupts(simulator, timer, event);
        uint64_t tick = simulator->next_tick;
        if ((cpu != NO_CPU ? event : timer < tick ? timer : tick) > until)
            return;
        if (cpu != NO_CPU) {
            happen(simulator, cpu);
        } else if (timer <= tick && timer_arrives(&simulator->timers.heap[0])) {
            arrive_next(simulator);
            if (simulator->now < simulator->next_tick)
                settle(simulator, NO_CPU);
        } else if (tick <= timer) {
            tick_next(simulator);
        } else {
            expire(simulator);
        }
    }
}

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

static void outside_fork(struct simulator *simulator, uint32_t program)
{
    struct process *process = process_create(simulator, NULL, program);
    record(simulator, OUTSIDE, TRACE_FORK, NULL, pid_of(process), 0);
    make_runnable(simulator, OUTSIDE, process, ENQUEUE_NEW, NULL);
}

static void outside_kill(struct simulator *simulator, struct process *process)
{
    kill_process(simulator, OUTSIDE, process, NULL);
}

static void outside_wake(struct simulator *simulator, struct process *process)
{
    if (process->waits == WAIT_CHILD)
        advance(simulator, process);
    else
        stop_waiting(simulator, process);
    make_runnable(simulator, OUTSIDE, process, ENQUEUE_WOKEN, NULL);
}

static void outside_migrate(struct simulator *simulator, struct process *process, uint32_t cpu)
{
    struct run_queue *queue = queue_of(simulator, process->task.cpu);
    queue_remove(simulator, OUTSIDE, queue, process);
    change_cpu(simulator, OUTSIDE, process, cpu);
    queue = queue_of(simulator, cpu);
    queue_add(simulator, OUTSIDE, queue, process, ENQUEUE_MOVED, NULL);
    announce(simulator, OUTSIDE, queue, process);
}

static void outside_give(struct simulator *simulator, struct channel *channel, uint64_t count)
{
    give(simulator, OUTSIDE, channel, count, true, NULL);
}

static void outside_set_attribute(struct simulator *simulator, struct process *process,
                                  enum attribute_kind kind, uint64_t value)
{
    set_attribute(simulator, OUTSIDE, process, kind, value);
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
