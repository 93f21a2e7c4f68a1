/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_BOOT_INJECT_H
#define KERNEL_BOOT_INJECT_H

#include <stdint.h>

/*
 * For tests of the kernel's failures: the boot argument inject=KIND, and
 * inject_at=TIME (default 50 ms). KIND is one of: panic; null: a wild access;
 * stack: endless recursion; order: locks in the wrong order; deadlock: a lock
 * that is never released; hang: CPUs that serve no more ticks. Called at each
 * tick, with no lock held.
 */
void inject_fault(uint64_t now);

#endif
