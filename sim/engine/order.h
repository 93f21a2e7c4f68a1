/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_ORDER_H
#define SIM_ENGINE_ORDER_H

/* The order of events: docs/simulator.md. */

#include "sim/engine/interrupts.h"

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

#endif
