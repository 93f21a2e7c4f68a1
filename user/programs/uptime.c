/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

int main(int argc, char *argv[])
{
    (void)argv;
    if (argc != 1)
        usage("uptime");
    int64_t now = clock_ns();
    printf("%d ticks, %ld.%06ld seconds\n", uptime(), now / 1000000000, now % 1000000000 / 1000);
    return 0;
}
