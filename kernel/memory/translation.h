/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_MEMORY_TRANSLATION_H
#define KERNEL_MEMORY_TRANSLATION_H

#include <stdint.h>

/* This CPU's address translation. Host tests supply their own. */
#ifndef HOST_TEST
static inline uint64_t translation_root(void)
{
    uint64_t satp;

    __asm__ volatile("csrr %0, satp" : "=r"(satp));
    return satp;
}

/* Flushes all cached translations, and instructions fetched through them. */
static inline void translation_flush(void)
{
    __asm__ volatile("sfence.vma\n\tfence.i" ::: "memory");
}

static inline void translation_set_root(uint64_t satp)
{
    __asm__ volatile("csrw satp, %0" ::"r"(satp) : "memory");
    translation_flush();
}

static inline void translation_flush_page(uint64_t address)
{
    __asm__ volatile("sfence.vma %0" ::"r"(address) : "memory");
}
#else
uint64_t translation_root(void);
void translation_set_root(uint64_t satp);
void translation_flush(void);
void translation_flush_page(uint64_t address);
#endif

#endif
