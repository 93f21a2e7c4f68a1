/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_MEMORY_LAYOUT_H
#define KERNEL_MEMORY_LAYOUT_H

/*
 * Sv39. The lower half of each address space is a process's own; the upper half
 * is the kernel's and the same in all:
 *
 *   0xffffffc000000000  all physical addresses from 0, devices too, 1 GiB pages
 *   0xffffffe000000000  kernel stacks, each above a guard
 */
#define PAGE_BYTES          4096ul
#define USER_END            (1ul << 38)
#define HEAP_END            (USER_END - 2 * PAGE_BYTES) /* xv6 uses the two pages above */
#define KERNEL_BASE         0xffffffc000000000ul
#define KERNEL_DIRECT_END   0xffffffe000000000ul
#define KERNEL_STACKS       0xffffffe000000000ul
#define KERNEL_STACK_BYTES  8192ul  /* mapped */
#define KERNEL_STACK_STRIDE 16384ul /* with the guard, which lies below */

#ifndef __ASSEMBLER__
#include <stdint.h>

typedef uint64_t physical_t;

/* Where the kernel sees physical memory. Host tests supply their own. */
#ifndef HOST_TEST
static inline void *physical_to_pointer(physical_t address)
{
    return (void *)(address + KERNEL_BASE);
}

static inline physical_t pointer_to_physical(const void *pointer)
{
    return (physical_t)pointer - KERNEL_BASE;
}
#else
void *physical_to_pointer(physical_t address);
physical_t pointer_to_physical(const void *pointer);
#endif

static inline uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

static inline uint64_t round_down(uint64_t value, uint64_t to)
{
    return value / to * to;
}
#endif

#endif
