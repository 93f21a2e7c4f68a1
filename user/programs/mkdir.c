/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    if (argc < 2)
        usage("mkdir DIRECTORY...");
    int status = 0;
    for (int i = 1; i < argc; i++) {
        if (mkdir(argv[i]) < 0)
            status = complain("mkdir", argv[i]);
    }
    return status;
}
