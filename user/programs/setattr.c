/* SPDX-License-Identifier: MIT */

/* Sets what the scheduler knows of a running process. */

#include "user/library/user.h"

#include "abi/attribute_names.h"

#define USAGE                                                                                      \
    "setattr PID ATTRIBUTE VALUE: priority, tickets, weight or nice; or in nanoseconds slice, "    \
    "runtime, deadline or period; or taskgroup"

int main(int argc, char *argv[])
{
    if (argc != 4)
        usage(USAGE);
    int pid = (int)number_argument("setattr", argv[1], 1, INT32_MAX);
    uint32_t kind = attribute_named(argv[2]);
    int64_t value = number_argument("setattr", argv[3], INT64_MIN, INT64_MAX);
    if (!kind)
        usage(USAGE);
    return setattribute(pid, (int)kind, value) < 0 ? complain("setattr", argv[1]) : 0;
}
