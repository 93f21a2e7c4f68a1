/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    if (argc != 2)
        usage("sleep TICKS");
    return sleep((int)number_argument("sleep", argv[1], 0, INT32_MAX)) < 0
               ? complain("sleep", argv[1])
               : 0;
}
