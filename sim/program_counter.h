/* SPDX-License-Identifier: MIT */
#ifndef SIM_PROGRAM_COUNTER_H
#define SIM_PROGRAM_COUNTER_H

#include <signal.h>
#include <stdint.h>
#include <sys/ucontext.h>

#ifdef __APPLE__
#include <mach-o/ldsyms.h>
#else
#include <link.h>
extern const char __executable_start[]; /* defined by the linker */
#endif

/* Returns the program counter at a signal. */
static inline uint64_t program_counter(const ucontext_t *context)
{
#if defined(__APPLE__) && defined(__x86_64__)
    return context->uc_mcontext->__ss.__rip;
#elif defined(__APPLE__)
    return __darwin_arm_thread_state64_get_pc(context->uc_mcontext->__ss);
#elif defined(__x86_64__)
    return (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return context->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

/* Converts an address in memory to an address in the program's file. */
static inline uint64_t address_in_program(uint64_t address)
{
#ifdef __APPLE__
    return address - (uint64_t)&_mh_execute_header;
#else
    const ElfW(Ehdr) *header = (const void *)__executable_start;
    return header->e_type == ET_EXEC ? address : address - (uint64_t)header;
#endif
}

#endif
