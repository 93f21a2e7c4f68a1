/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    if (argc < 3)
        usage("tickets NUMBER COMMAND [ARGUMENT]...");
    int64_t tickets = number_argument("tickets", argv[1], INT32_MIN, INT32_MAX);
    if (settickets((int)tickets) < 0)
        return complain("tickets", argv[1]);
    become_program("tickets", argv + 2);
}
