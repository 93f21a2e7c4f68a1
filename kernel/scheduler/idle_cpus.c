/* SPDX-License-Identifier: MIT */

#include "scheduler/idle_cpus.h"

#include "scheduler/tasks.h"
#include "time/tick.h"

#define WORD_CPUS 64

/* A bit for each CPU in the idle loop; a hint, read without a lock. */
static uint64_t idle_cpus[CPUS_MAX / WORD_CPUS];
_Static_assert(CPUS_MAX <= POLICY_CPUS_MAX, "a policy can count all CPUs");

/*
 * A bit for each CPU whose ticks have stopped, because it is idle and no process waits anywhere. A
 * CPU that has its tick while processes wait in its queue notifies them: so none of them misses
 * more than that tick.
 */
static uint64_t still_cpus[CPUS_MAX / WORD_CPUS];

void idle_cpu_set(const struct cpu *cpu, bool idle)
{
    uint64_t *word = &idle_cpus[cpu->id / WORD_CPUS];
    uint64_t bit = 1ul << cpu->id % WORD_CPUS;
    if (idle)
        __atomic_or_fetch(word, bit, __ATOMIC_RELAXED);
    else
        __atomic_and_fetch(word, ~bit, __ATOMIC_RELAXED);
}

bool cpu_is_idle(uint32_t cpu)
{
    uint64_t word = __atomic_load_n(&idle_cpus[cpu / WORD_CPUS], __ATOMIC_RELAXED);
    return word & 1ul << cpu % WORD_CPUS;
}

uint32_t idle_cpu_lowest(const struct cpu_set *cpus)
{
    for (uint32_t first = 0; first < scheduler.cpus; first += WORD_CPUS) {
        uint64_t idle = __atomic_load_n(&idle_cpus[first / WORD_CPUS], __ATOMIC_RELAXED);
        if (cpus)
            idle &= cpus->words[first / WORD_CPUS];
        if (idle)
            return first + (uint32_t)__builtin_ctzl(idle);
    }
    return NO_CPU;
}

bool idle_cpu_claim(uint32_t cpu)
{
    uint64_t *word = &idle_cpus[cpu / WORD_CPUS];
    uint64_t bit = 1ul << cpu % WORD_CPUS;
    return (__atomic_load_n(word, __ATOMIC_RELAXED) & bit) &&
           (__atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED) & bit);
}

void still_cpu_begin(struct cpu *cpu)
{
    cpu->still = true;
    cpu->after_switch = true;
    __atomic_or_fetch(&still_cpus[cpu->id / WORD_CPUS], 1ul << cpu->id % WORD_CPUS,
                      __ATOMIC_RELAXED);
}

void still_cpu_end(struct cpu *cpu)
{
    cpu->still = false;
    __atomic_and_fetch(&still_cpus[cpu->id / WORD_CPUS], ~(1ul << cpu->id % WORD_CPUS),
                       __ATOMIC_RELAXED);
    tick_resume();
}

void still_cpus_call(void)
{
    for (uint32_t first = 0; first < scheduler.cpus; first += WORD_CPUS) {
        uint64_t *word = &still_cpus[first / WORD_CPUS];
        uint64_t called = __atomic_load_n(word, __ATOMIC_RELAXED);
        if (called)
            called = __atomic_exchange_n(word, 0, __ATOMIC_RELAXED);
        for (; called; called &= called - 1) {
            struct cpu *cpu = &cpus[first + (uint32_t)__builtin_ctzl(called)];
            __atomic_store_n(&cpu->look, true, __ATOMIC_RELEASE);
            cpu_interrupt(cpu);
        }
    }
}
