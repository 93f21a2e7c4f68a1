/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_MACHINE_OVERDUE_H
#define SCHEDLAB_ABI_MACHINE_OVERDUE_H

/*
 * How a machine with this check (spike/machine.h) ends an endless loop in the kernel. If a CPU runs
 * in supervisor mode and has not taken its timer interrupt for this long, it gets an exception. The
 * exception has this cause, which the instruction set reserves for custom use. Long work in the
 * kernel takes its interrupts between steps, thousands of times in this period.
 */
#define MACHINE_OVERDUE_CAUSE 24
#define MACHINE_OVERDUE_NS    100000000

#endif
