/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_MACHINE_STATUS_H
#define SCHEDLAB_ABI_MACHINE_STATUS_H

/* With what status the machine ends; poweroff() may give any other from 0 to 127 too. */
enum machine_status {
    MACHINE_SUCCESS = 0,
    MACHINE_FAILED = 1,    /* the workload said so, or could not be started */
    MACHINE_PANIC = 101,   /* the kernel found itself broken; its message is on the console */
    MACHINE_LIMIT = 102,   /* the boot argument limit=TIME was reached */
    MACHINE_STUCK = 103,   /* not the kernel's: all CPUs sleep, and nothing can wake one */
    MACHINE_BROKEN = 105,  /* not the kernel's: a policy broke the simulator (sim/last_words.c) */
    MACHINE_REFUSED = 104, /* a command of the machine was not obeyed (machine_commands.h) */
};

#endif
