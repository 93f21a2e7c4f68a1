/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    if (argc != 3)
        usage("ln OLD NEW");
    return link(argv[1], argv[2]) < 0 ? complain("ln", argv[2]) : 0;
}
