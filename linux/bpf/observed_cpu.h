/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_OBSERVED_CPU_H
#define LINUX_BPF_OBSERVED_CPU_H

/* What the trace knows of the CPU on which it is written, and for which thread that CPU acts. */

#include "interrupts.h"
#include "shared.h"

/* What the trace knows of a CPU. Only that CPU touches it. */
struct observed_cpu {
    uint32_t started;   /* 1: its START is written */
    uint32_t current;   /* the running thread's PID; 0: idle */
    uint32_t inside;    /* 1: the scheduler was entered, and not left */
    uint32_t yielded;   /* 1: the running thread has yielded since it was switched to */
    uint32_t asked;     /* the CPU that was last asked to pick again from here, + 1 */
    uint32_t forked_to; /* the CPU for which a thread was last forked here, + 1 */
    uint32_t ended;     /* 1: the running thread's EXIT is written; it has yet to leave */
    uint32_t padding[9];
};

static struct observed_cpu observed_cpus[HOST_CPUS];

const volatile struct observer_settings told SEC(".rodata.told");

static struct observed_cpu *this_cpu(void)
{
    return &observed_cpus[bpf_get_smp_processor_id() & (HOST_CPUS - 1)];
}

/* Returns the PID of the thread that causes what happens now; 0 in an interrupt, which acts for no
 * thread. */
static uint32_t actor(void)
{
    return in_interrupt() ? 0 : this_cpu()->current;
}

#endif
