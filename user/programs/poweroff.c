/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    if (argc > 2)
        usage("poweroff [STATUS]");
    int status = argc == 2 ? (int)number_argument("poweroff", argv[1], 0, 127) : MACHINE_SUCCESS;
    sync();
    poweroff(status);
    return complain("poweroff", "machine");
}
