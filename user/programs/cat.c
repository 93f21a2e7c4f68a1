/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

static char buffer[4096];

/* Copies one open file to descriptor 1. Returns the exit status. */
static int copy(int descriptor, const char *name)
{
    for (;;) {
        int n = read(descriptor, buffer, sizeof(buffer));
        if (n < 0)
            return complain("cat", name);
        if (n == 0)
            return 0;
        if (write(1, buffer, n) != n)
            return complain("cat", "output");
    }
}

int main(int argc, char *argv[])
{
    if (argc > 1 && argv[1][0] == '-')
        usage("cat [FILE]...");
    if (argc == 1)
        return copy(0, "input");

    int status = 0;
    for (int i = 1; i < argc; i++) {
        int descriptor = open(argv[i], OPEN_READ);
        if (descriptor < 0) {
            status = complain("cat", argv[i]);
            continue;
        }
        status |= copy(descriptor, argv[i]);
        close(descriptor);
    }
    return status;
}
