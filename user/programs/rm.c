/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    if (argc < 2)
        usage("rm FILE|EMPTY-DIRECTORY...");
    int status = 0;
    for (int i = 1; i < argc; i++) {
        if (unlink(argv[i]) < 0)
            status = complain("rm", argv[i]);
    }
    return status;
}
