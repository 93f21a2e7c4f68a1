/* SPDX-License-Identifier: MIT */

/* Sets the scheduling attributes of a running process. */

#include "user/library/user.h"

#include "abi/attribute_names.h"
#include "abi/cpu_list.h"

#define USAGE                                                                                      \
    "setattr PID ATTRIBUTE VALUE: priority, tickets, weight or nice; in nanoseconds slice, "       \
    "runtime, deadline or period; taskgroup; or cpus, as 0-3,8"

static int set_cpus(const char *pid_text, const char *list)
{
    uint64_t cpus[CPU_LIST_WORDS];
    int pid = (int)number_argument("setattr", pid_text, 1, INT32_MAX);
    if (!cpu_list_read(list, cpus))
        usage(USAGE);
    return setaffinity(pid, cpus, CPU_LIST_WORDS) < 0 ? complain("setattr", pid_text) : 0;
}

int main(int argc, char *argv[])
{
    if (argc != 4)
        usage(USAGE);
    if (strcmp(argv[2], "cpus") == 0)
        return set_cpus(argv[1], argv[3]);
    int pid = (int)number_argument("setattr", argv[1], 1, INT32_MAX);
    uint32_t kind = attribute_named(argv[2]);
    int64_t value = number_argument("setattr", argv[3], INT64_MIN, INT64_MAX);
    if (!kind)
        usage(USAGE);
    return setattribute(pid, (int)kind, value) < 0 ? complain("setattr", argv[1]) : 0;
}
