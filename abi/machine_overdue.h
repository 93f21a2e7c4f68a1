/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_MACHINE_OVERDUE_H
#define SCHEDLAB_ABI_MACHINE_OVERDUE_H

/*
 * How a machine that watches (spike/machine.h) ends an endless loop in the kernel: a CPU whose
 * timer interrupt has been due for this long, and that runs in supervisor mode, has an exception
 * with this cause, which the instruction set leaves to custom use. Long work in the kernel takes
 * its interrupts between steps, thousands of times in that time.
 */
#define MACHINE_OVERDUE_CAUSE 24
#define MACHINE_OVERDUE_NS    100000000

#endif
