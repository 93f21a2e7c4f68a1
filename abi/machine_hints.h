/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_MACHINE_HINTS_H
#define SCHEDLAB_ABI_MACHINE_HINTS_H

/*
 * What the kernel and programs tell a machine that listens (spike/hints.h): the instruction
 * `slti x0, REGISTER, HINT`, which the instruction set leaves to custom use. All other machines
 * pass over it.
 */
#define HINT_BURN                                                                                  \
    1 /* so many instructions may pass at once as the register says; 0 is left of them */
#define HINT_LOCK 2 /* of register x0: a lock is about to be taken, or was just given back */

#endif
