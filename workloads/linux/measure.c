/* SPDX-License-Identifier: MIT */

/*
 * Runs a command of Linux in the measured window. So any program, with its children, becomes a
 * workload. Its group has the name of its first word.
 */

#include <libgen.h>
#include <string.h>

#include "workloads/api/workload.h"

static char *command;

static void run(int64_t nothing)
{
    char words[4096];
    char shell[] = "sh";
    char option[] = "-c";
    (void)nothing;
    strncpy(words, command, sizeof(words) - 1);
    words[sizeof(words) - 1] = 0;
    char *word = strtok(words, " \t\n");
    workload_group(word ? basename(word) : shell);
    workload_become((char *[]){shell, option, command, NULL});
}

int main(int argc, char *argv[])
{
    if (argc != 2)
        workload_wrong_usage(argv[0], "COMMAND", "name one command, as one word of the shell's");
    command = argv[1];
    workload_begin();
    workload_start(run, 0);
    return workload_finish();
}
