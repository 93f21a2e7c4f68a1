/* SPDX-License-Identifier: MIT */

#include "scheduler/cpu.h"

#include "boot/machine_mode.h"
#include "lib/panic.h"
#include "memory/layout.h"
#include "trap/csr.h"

#define PATIENCE 20000000 /* spins; several ticks */

static bool stopping;
static uint32_t stopped_count;

void cpu_interrupt(struct cpu *cpu)
{
    volatile uint32_t *software = physical_to_pointer(machine_mode[cpu->hart].software);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    *software = 1;
}

/* Waits for each CPU for a bounded time: a CPU that never stops must not block the panic. */
void cpu_halt_others(void)
{
    for (uint32_t i = 0; i < machine.cpus; i++) {
        if (&cpus[i] == this_cpu())
            continue;
        machine_mode[cpus[i].hart].halt = 1;
        cpu_interrupt(&cpus[i]);
        for (uint32_t spins = 0; spins < 1000000 && !machine_mode[cpus[i].hart].halted; spins++)
            ;
    }
}

static _Noreturn void stop_this_cpu(void)
{
    csr_write(sie, 0);
    __atomic_add_fetch(&stopped_count, 1, __ATOMIC_RELEASE);
    for (;;)
        wait_for_interrupt();
}

void cpu_stop_if_requested(void)
{
    if (__atomic_load_n(&stopping, __ATOMIC_RELAXED))
        stop_this_cpu();
}

void cpu_stop_others(void)
{
    kernel_assert(!this_cpu()->held);
    if (__atomic_exchange_n(&stopping, true, __ATOMIC_ACQ_REL))
        stop_this_cpu();
    for (uint32_t i = 0; i < machine.cpus; i++) {
        if (&cpus[i] != this_cpu())
            cpu_interrupt(&cpus[i]);
    }
    for (uint32_t spins = 0; spins < PATIENCE; spins++) {
        if (__atomic_load_n(&stopped_count, __ATOMIC_ACQUIRE) == machine.cpus - 1)
            return;
    }
    cpu_halt_others();
}
