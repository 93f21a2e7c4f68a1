/* SPDX-License-Identifier: MIT */
#ifndef TESTS_GUEST_SHELL_H
#define TESTS_GUEST_SHELL_H

#include "tests/guest/check.h"

/* Runs lines of the shell, and checks their output and exit status. */

static char output[8192];

struct run {
    const char *line;
    int status;
    const char *output; /* descriptors 1 and 2 together; null: any output */
};

/* Reads until no process can write to the pipe. */
static void collect(int descriptor)
{
    size_t used = 0;
    int n;
    while (used < sizeof(output) - 1 &&
           (n = read(descriptor, output + used, (int)(sizeof(output) - 1 - used))) > 0)
        used += (size_t)n;
    output[used] = 0;
}

/* Runs a program with its outputs in `output` and its input from a pipe. Returns its status. */
static int run_program(char *const arguments[], int input)
{
    int ends[2];
    check(pipe(ends) == 0);
    int pid = test_fork();
    if (pid == 0) {
        close(0);
        dup(input);
        close(1);
        dup(ends[1]);
        close(2);
        dup(ends[1]);
        close(ends[0]);
        close(ends[1]);
        close(input);
        exec_program(arguments);
        exit(1000);
    }
    close(ends[1]);
    collect(ends[0]);
    close(ends[0]);
    return test_wait(pid);
}

static int run_without_input(char *const arguments[])
{
    int ends[2];
    check(pipe(ends) == 0);
    close(ends[1]);
    int status = run_program(arguments, ends[0]);
    close(ends[0]);
    return status;
}

static void check_run(const struct run *run)
{
    char line[512];
    check(text_copy(line, run->line, sizeof(line)));
    char *const arguments[] = {"sh", "-c", line, NULL};
    int status = run_without_input(arguments);
    if (status == run->status && (!run->output || strcmp(output, run->output) == 0))
        return;
    printf("# %s\n# status %d, not %d; output:\n%s\n# and not:\n%s\n", run->line, status,
           run->status, output, run->output ? run->output : "(any)");
    check(!"the shell does as it should");
}

static void check_runs(const struct run *runs, size_t count)
{
    char home[24];
    snprintf(home, sizeof(home), "/sh%d", getpid());
    check(mkdir(home) == 0 && chdir(home) == 0);
    for (size_t i = 0; i < count; i++)
        check_run(&runs[i]);
    check(chdir("/") == 0 && unlink(home) == 0);
}

#define CHECK_RUNS(runs) check_runs(runs, sizeof(runs) / sizeof((runs)[0]))

#endif
