/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_GUEST_CALLBACK_LOG_H
#define LINUX_GUEST_CALLBACK_LOG_H

/* The callbacks of a scheduler that was compiled with LOGGED, in the order of their calls. */

#define CALLBACK_RECORDS    16384
#define CALLBACK_NAME_BYTES 24

struct callback_record {
    unsigned long long time_ns;
    int pid; /* of the task; 0: none */
    unsigned int cpu;
    char name[CALLBACK_NAME_BYTES];
};

struct callback_log {
    unsigned int count; /* of all calls; only the first ones have a record */
    unsigned int unused;
    struct callback_record records[CALLBACK_RECORDS];
};

#endif
