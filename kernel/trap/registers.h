/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_TRAP_REGISTERS_H
#define KERNEL_TRAP_REGISTERS_H

#include <stdint.h>

/* A user program's registers while the kernel runs for it. trap/entry.S knows this layout. */
struct trap_frame {
    uint64_t x[32]; /* x[0]: the program counter */
    uint64_t reserved;
    struct cpu *cpu; /* the CPU whose registers these were, for the return into the kernel */
};

enum { REGISTER_PC = 0, REGISTER_RA = 1, REGISTER_SP = 2, REGISTER_A0 = 10, REGISTER_A7 = 17 };

/* The registers that a function call preserves. scheduler/switch.S knows this layout. */
struct switch_frame {
    uint64_t ra;
    uint64_t sp;
    uint64_t s[12];
};

#endif
