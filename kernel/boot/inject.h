/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_BOOT_INJECT_H
#define KERNEL_BOOT_INJECT_H

#include <stdint.h>

/*
 * For tests of how the kernel breaks: the boot argument inject=KIND, and
 * inject_at=TIME (50 ms unless given). KIND is panic, null (a wild access),
 * stack (an endless recursion), order (locks in the wrong order), deadlock (a
 * lock that is never given back) or hang (CPUs that serve no more ticks).
 * Called at each tick, with no lock held.
 */
void inject_fault(uint64_t now);

#endif
