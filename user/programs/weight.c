/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    if (argc < 3)
        usage("weight NUMBER COMMAND [ARGUMENT]...");
    int64_t weight = number_argument("weight", argv[1], INT32_MIN, INT32_MAX);
    if (setweight(getpid(), (int)weight) < 0)
        return complain("weight", argv[1]);
    become_program("weight", argv + 2);
}
