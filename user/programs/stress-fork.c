/* SPDX-License-Identifier: MIT */

/*
 * Forks waiting children, up to the given number or until the kernel refuses.
 * Then it lets them end, and counts them.
 */

#include "user/library/user.h"

/* A child's part: it ends when no process can write to the pipe any more. */
_Noreturn static void wait_for_end(const int ends[2])
{
    char nothing;
    close(ends[1]);
    read(ends[0], &nothing, 1);
    exit(0);
}

int main(int argc, char *argv[])
{
    int ends[2];
    if (argc > 2)
        usage("stress-fork [PROCESSES]");
    int requested =
        argc == 2 ? (int)number_argument("stress-fork", argv[1], 1, INT32_MAX) : INT32_MAX;
    if (pipe(ends) < 0)
        return complain("stress-fork", "pipe");

    int forked = 0;
    for (; forked < requested; forked++) {
        int pid = fork();
        if (pid == 0)
            wait_for_end(ends);
        if (pid < 0)
            break;
    }
    int reason = forked < requested ? last_error() : 0;
    close(ends[1]);

    int ended = 0;
    int status;
    while (wait(&status) > 0)
        ended += status == 0;
    printf("stress-fork: %d forked, %d ended well (%s)\n", forked, ended, error_text(reason));
    return forked == ended && forked > 0 ? 0 : 1;
}
