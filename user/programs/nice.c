/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    static const struct attribute_command nice = {
        "nice", setpriority, "nice PRIORITY COMMAND [ARGUMENT]..., or nice -p PID PRIORITY"};
    return run_attribute_command(&nice, argc, argv);
}
