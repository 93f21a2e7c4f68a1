/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_OBSERVED_CPU_H
#define LINUX_BPF_OBSERVED_CPU_H

/* The trace's data about the present CPU, and the thread that the CPU acts for. */

#include "interrupts.h"
#include "shared.h"

/* The trace's data about a CPU. Only that CPU accesses it. */
struct observed_cpu {
    uint32_t started;       /* 1: its START is written */
    uint32_t current;       /* the running thread's PID; 0: idle */
    uint32_t inside;        /* 1: the CPU is inside the scheduler */
    uint32_t yielded;       /* 1: the running thread has yielded since its last switch */
    uint32_t requested_cpu; /* the CPU that was last asked from here to pick again, + 1 */
    uint32_t forked_to;     /* the CPU that the last thread forked here was sent to, + 1 */
    uint32_t ended;         /* 1: the running thread's EXIT is written; it has not left yet */
    uint32_t padding[9];
};

static struct observed_cpu observed_cpus[HOST_CPUS];

const volatile struct observer_settings told SEC(".rodata.told");

static struct observed_cpu *this_cpu(void)
{
    return &observed_cpus[bpf_get_smp_processor_id() & (HOST_CPUS - 1)];
}

/* Returns the PID of the thread that causes the present event; 0 in an interrupt, which acts for
 * no thread. */
static uint32_t actor(void)
{
    return in_interrupt() ? 0 : this_cpu()->current;
}

#endif
