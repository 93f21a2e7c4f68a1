/* SPDX-License-Identifier: MIT */

#include "user/library/user.h"

/* One write for the whole line, so that lines of several processes do not mix. */
static char line[4096];

int main(int argc, char *argv[])
{
    size_t n = 0;
    for (int i = 1; i < argc; i++) {
        size_t length = strlen(argv[i]);
        memcpy(line + n, argv[i], length); /* all arguments fit on one page of stack */
        n += length;
        if (i + 1 < argc)
            line[n++] = ' ';
    }
    line[n++] = '\n';
    return write(1, line, (int)n) == (int)n ? 0 : complain("echo", "output");
}
