/* SPDX-License-Identifier: MIT */

#include "time/timer.h"

#include <stddef.h>

#include "boot/inject.h"
#include "boot/shutdown.h"
#include "device/device_tree.h"
#include "lib/panic.h"
#include "scheduler/cpu.h"
#include "scheduler/policy_times.h"
#include "scheduler/scheduler.h"
#include "time/clock.h"
#include "time/tick.h"
#include "time/timer_heap.h"
#include "trace/trace.h"
#include "trap/csr.h"

#define STAGGER_STANDARD 1000ul /* nanoseconds */
#define NO_TICK          (1ul << 62)

/*
 * The CPUs' ticks are staggered, by the length of one tick's work. If they were
 * simultaneous, a few instructions would decide which CPU finds work first, and
 * all later events.
 */
static uint64_t stagger(uint32_t cpu)
{
    uint64_t requested = boot_argument_number("stagger", STAGGER_STANDARD);
    uint64_t most = clock_tick_ns() / 2 / machine.cpus;
    return cpu * (requested < most ? requested : most);
}

/*
 * Programs the next interrupt: at the tick, or earlier for the earliest timer.
 * A timer with the time of CPU 0's tick, as for sleepers that count ticks,
 * waits for this CPU's tick.
 */
static void program_interrupt(const struct cpu *cpu)
{
    uint64_t when = cpu->next_tick;
    if (cpu->timers && cpu->timers->when < when - cpu->tick_offset)
        when = cpu->timers->when;
    if (cpu->policy_time < when)
        when = cpu->policy_time;
    csr_write(0x14d, clock_hardware(when)); /* stimecmp */
}

void timer_start(struct timer *timer, uint64_t when, void (*expired)(struct timer *timer))
{
    struct cpu *cpu = this_cpu();
    spinlock_acquire(&cpu->timer_lock);
    kernel_assert(!timer->pending);
    *timer = (struct timer){
        .when = when,
        .expired = expired,
        .order = cpu->timer_order++,
        .cpu = cpu,
        .pending = true,
    };
    cpu->timers = timer_heap_meld(cpu->timers, timer);
    if (cpu->timers == timer)
        program_interrupt(cpu);
    spinlock_release(&cpu->timer_lock);
}

/*
 * If the timer is expiring on another CPU, waits until its function has
 * returned. So the caller may free what the function uses.
 */
bool timer_cancel(struct timer *timer)
{
    struct cpu *cpu = timer->cpu;
    if (!cpu)
        return false;
    spinlock_acquire(&cpu->timer_lock);
    bool pending = timer->pending;
    if (pending) {
        cpu->timers = timer_heap_remove(cpu->timers, timer);
        timer->pending = false;
    }
    spinlock_release(&cpu->timer_lock);
    /* Without the lock, which the other CPU needs to finish. */
    while (cpu != this_cpu() && __atomic_load_n(&cpu->expiring, __ATOMIC_ACQUIRE) == timer)
        ;
    return pending;
}

/* Calls the functions of all expired timers. */
static void expire_timers(struct cpu *cpu, uint64_t now)
{
    spinlock_acquire(&cpu->timer_lock);
    while (cpu->timers && cpu->timers->when <= now) {
        struct timer *timer = cpu->timers;
        cpu->timers = timer_heap_remove(cpu->timers, timer);
        timer->pending = false;
        __atomic_store_n(&cpu->expiring, timer, __ATOMIC_RELAXED);
        spinlock_release(&cpu->timer_lock);
        timer->expired(timer);
        __atomic_store_n(&cpu->expiring, NULL, __ATOMIC_RELEASE);
        spinlock_acquire(&cpu->timer_lock);
    }
    spinlock_release(&cpu->timer_lock);
}

void tick_init_cpu(void)
{
    struct cpu *cpu = this_cpu();
    spinlock_init(&cpu->timer_lock, "timers", LOCK_TIMER);
    cpu->policy_time = NO_POLICY_TIME;
    cpu->tick_offset = stagger(cpu->id);
    cpu->next_tick = (clock_ticks() + 1) * clock_tick_ns() + cpu->tick_offset;
    program_interrupt(cpu);
}

void tick_interrupt(void)
{
    struct cpu *cpu = this_cpu();
    uint64_t now = clock_now();
    expire_timers(cpu, now);
    policy_times_expire(cpu, now);
    if (now >= cpu->next_tick) {
        shutdown_at_limit(now);
        inject_fault(now);
        cpu->next_tick += ((now - cpu->next_tick) / clock_tick_ns() + 1) * clock_tick_ns();
        if (!scheduler_tick())
            cpu->next_tick = NO_TICK;
        trace_poll();
    }
    spinlock_acquire(&cpu->timer_lock);
    program_interrupt(cpu);
    spinlock_release(&cpu->timer_lock);
}

void tick_program(void)
{
    struct cpu *cpu = this_cpu();
    spinlock_acquire(&cpu->timer_lock);
    program_interrupt(cpu);
    spinlock_release(&cpu->timer_lock);
}

void tick_resume(void)
{
    struct cpu *cpu = this_cpu();
    uint64_t ticks = (clock_now() - cpu->tick_offset) / clock_tick_ns() + 1;
    spinlock_acquire(&cpu->timer_lock);
    cpu->next_tick = ticks * clock_tick_ns() + cpu->tick_offset;
    program_interrupt(cpu);
    spinlock_release(&cpu->timer_lock);
}
