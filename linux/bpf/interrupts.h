/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_INTERRUPTS_H
#define LINUX_BPF_INTERRUPTS_H

/* Detects code that runs in an interrupt, which acts for no thread. */

#ifdef __TARGET_ARCH_x86
extern const int __preempt_count __ksym __weak;
#endif

/*
 * The fields of the preempt count. The field of hard interrupts is bits 16 to 19. In kernels that
 * count disabled interrupts there, it is bits 24 to 27, which are 0 in all other kernels. So the
 * first hard interrupt reveals the kind of kernel.
 */
#define COUNT_SOFT_INTERRUPT  0x00000100u
#define COUNT_INTERRUPTS      0x000f0000u
#define COUNT_INTERRUPTS_HIGH 0x0f000000u

static bool counts_high;

static uint32_t preempt_count(void)
{
#ifdef __TARGET_ARCH_x86
    if (bpf_ksym_exists(&__preempt_count)) {
        const int *count = bpf_this_cpu_ptr(&__preempt_count);
        return (uint32_t)*count;
    }
#endif
    return 0;
}

/* Returns true in the handler of a hard interrupt. */
static bool in_hard_interrupt(void)
{
    uint32_t count = preempt_count();
    if (count & COUNT_INTERRUPTS_HIGH) {
        if (!counts_high)
            counts_high = true;
        return true;
    }
    return !counts_high && (count & COUNT_INTERRUPTS);
}

/* Returns true in the handler of a hard or of a soft interrupt. */
static bool in_interrupt(void)
{
    return in_hard_interrupt() || (preempt_count() & COUNT_SOFT_INTERRUPT);
}

#endif
