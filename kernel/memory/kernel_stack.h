/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_MEMORY_KERNEL_STACK_H
#define KERNEL_MEMORY_KERNEL_STACK_H

#include <stdint.h>

/* At boot, on one CPU: completes the kernel's half of `root`, which the boot code made. */
void kernel_address_space_init(uint64_t *root);

/*
 * Maps a kernel stack above a guard. Returns its top, or null if memory is short. The pages of a
 * destroyed stack may stay mapped, for the next create.
 */
void *kernel_stack_create(void);
void kernel_stack_destroy(void *top);
/* Returns the number of pages of destroyed stacks kept for reuse. */
uint64_t kernel_stacks_spare_pages(void);
/* Frees these pages. Returns how many there were. */
uint64_t kernel_stacks_give_spare(void);

#endif
