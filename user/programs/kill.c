/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    if (argc < 2)
        usage("kill PID...");
    int status = 0;
    for (int i = 1; i < argc; i++) {
        if (kill((int)number_argument("kill", argv[i], 1, INT32_MAX)) < 0)
            status = complain("kill", argv[i]);
    }
    return status;
}
