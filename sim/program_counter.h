/* SPDX-License-Identifier: MIT */
#ifndef SIM_PROGRAM_COUNTER_H
#define SIM_PROGRAM_COUNTER_H

#include <link.h>
#include <stdint.h>
#include <ucontext.h>

extern const char __executable_start[]; /* the linker's */

/* Returns where the program was when a signal came. */
static inline uint64_t program_counter(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return context->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

/* Returns an address as the program's file has it. */
static inline uint64_t address_in_program(uint64_t address)
{
    const ElfW(Ehdr) *header = (const void *)__executable_start;
    return header->e_type == ET_EXEC ? address : address - (uint64_t)header;
}

#endif
