/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    static const struct attribute_command weight = {
        "weight", setweight, "weight NUMBER COMMAND [ARGUMENT]..., or weight -p PID NUMBER"};
    return run_attribute_command(&weight, argc, argv);
}
