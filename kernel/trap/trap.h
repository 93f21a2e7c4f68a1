/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_TRAP_TRAP_H
#define KERNEL_TRAP_TRAP_H

/* Makes this CPU take its traps in trap/entry.S. */
void trap_init_cpu(void);
/* Serves the interrupts that are pending on this CPU. */
void interrupts_serve(void);

#endif
