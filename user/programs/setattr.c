/* SPDX-License-Identifier: MIT */

/* Sets what the scheduler knows of a running process. */

#include "user/library/user.h"

#define USAGE "setattr PID priority|tickets|weight VALUE"

static int set(const char *attribute, int pid, int value)
{
    if (strcmp(attribute, "priority") == 0)
        return setpriority(pid, value);
    if (strcmp(attribute, "tickets") == 0)
        return settickets_pid(pid, value);
    if (strcmp(attribute, "weight") == 0)
        return setweight(pid, value);
    usage(USAGE);
}

int main(int argc, char *argv[])
{
    if (argc != 4)
        usage(USAGE);
    int pid = (int)number_argument("setattr", argv[1], 1, INT32_MAX);
    int value = (int)number_argument("setattr", argv[3], INT32_MIN, INT32_MAX);
    return set(argv[2], pid, value) < 0 ? complain("setattr", argv[1]) : 0;
}
