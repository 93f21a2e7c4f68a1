/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    static const struct attribute_command tickets = {
        "tickets", settickets_pid,
        "tickets NUMBER COMMAND [ARGUMENT]..., or tickets -p PID NUMBER"};
    return run_attribute_command(&tickets, argc, argv);
}
