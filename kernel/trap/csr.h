/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_TRAP_CSR_H
#define KERNEL_TRAP_CSR_H

#include <stdint.h>

/* Control and status registers (RISC-V privileged architecture 1.12). */
#define csr_read(name)                                                                             \
    ({                                                                                             \
        uint64_t csr_value;                                                                        \
        __asm__ volatile("csrr %0, " #name : "=r"(csr_value) : : "memory");                        \
        csr_value;                                                                                 \
    })
#define csr_write(name, value)                                                                     \
    __asm__ volatile("csrw " #name ", %0" : : "r"((uint64_t)(value)) : "memory")
#define csr_set(name, bits)                                                                        \
    __asm__ volatile("csrs " #name ", %0" : : "r"((uint64_t)(bits)) : "memory")
#define csr_clear(name, bits)                                                                      \
    __asm__ volatile("csrc " #name ", %0" : : "r"((uint64_t)(bits)) : "memory")

#define CAUSE_INTERRUPT        (1ul << 63)
#define CAUSE_USER_CALL        8
#define CAUSE_FETCH_PAGE_FAULT 12
#define CAUSE_LOAD_PAGE_FAULT  13
#define CAUSE_STORE_PAGE_FAULT 15

#define INTERRUPT_SOFTWARE (1ul << 1) /* in sip and sie */
#define INTERRUPT_TIMER    (1ul << 5)
#define INTERRUPT_EXTERNAL (1ul << 9)

static inline void wait_for_interrupt(void)
{
    __asm__ volatile("wfi" : : : "memory");
}

#endif
