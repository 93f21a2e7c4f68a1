/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    (void)argv;
    if (argc != 1)
        usage("sync");
    return sync() < 0 ? complain("sync", "disk") : 0;
}
