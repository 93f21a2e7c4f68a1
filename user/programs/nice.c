/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    if (argc < 3)
        usage("nice PRIORITY COMMAND [ARGUMENT]...");
    int64_t priority = number_argument("nice", argv[1], INT32_MIN, INT32_MAX);
    if (setpriority(getpid(), (int)priority) < 0)
        return complain("nice", argv[1]);
    become_program("nice", argv + 2);
}
