/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_MACHINE_STATUS_H
#define SCHEDLAB_ABI_MACHINE_STATUS_H

/* The exit status of the machine; poweroff() may also return any other from 0 to 127. */
enum machine_status {
    MACHINE_SUCCESS = 0,
    MACHINE_FAILED = 1,    /* the workload reported failure, or could not be started */
    MACHINE_PANIC = 101,   /* the kernel detected an internal error; its message is on the
                            * console */
    MACHINE_LIMIT = 102,   /* the boot argument limit=TIME was reached */
    MACHINE_STUCK = 103,   /* not the kernel's: all CPUs sleep, and nothing can wake one */
    MACHINE_BROKEN = 105,  /* not the kernel's: a policy broke the simulator (sim/crash_report.c) */
    MACHINE_REFUSED = 104, /* a command of the machine failed (machine_commands.h) */
};

#endif
