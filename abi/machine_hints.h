/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_MACHINE_HINTS_H
#define SCHEDLAB_ABI_MACHINE_HINTS_H

/*
 * Hints from the kernel and programs to a machine that supports them (spike/hints.h): the
 * instruction `slti x0, REGISTER, HINT`, which the instruction set reserves for custom use. All
 * other machines ignore it.
 */
#define HINT_BURN 1 /* as many instructions as the register says may be skipped; then it is 0 */
#define HINT_LOCK 2 /* of register x0: a lock is about to be taken, or was just released */

#endif
