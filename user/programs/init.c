/* SPDX-License-Identifier: MIT */

/*
 * The first process. Opens the console, then either runs the one command of the
 * boot argument run="…" and ends the machine with its success or failure, or
 * keeps a shell running. Orphans become its children; it reaps them.
 */

#include "user/library/user.h"

static char command[1024];
static char *words[ARGUMENTS_MAX + 1];

static void open_console(void)
{
    if (open("/console", OPEN_BOTH) < 0) {
        mknod("/console", DEVICE_CONSOLE, 0);
        open("/console", OPEN_BOTH);
    }
    dup(0);
    dup(0);
}

/* Starts a program. Returns its PID, or -1. */
static int start(char *const arguments[])
{
    int pid = fork();
    if (pid == 0)
        become_program("init", arguments);
    if (pid < 0)
        complain("init", "fork");
    return pid;
}

/* Returns the exit status of `pid`; other children are orphans. */
static int wait_for(int pid)
{
    for (;;) {
        int status = -1;
        int ended = wait(&status);
        if (ended == pid || ended < 0)
            return status;
    }
}

_Noreturn static void end_machine(int status)
{
    sync();
    poweroff(status);
    complain("init", "poweroff");
    for (;;)
        sleep(1000);
}

_Noreturn static void run_command(void)
{
    int status = -1;
    if (text_split(command, words, ARGUMENTS_MAX + 1) < 1) {
        fprintf(2, "init: boot argument run: no command, an open quote or too many words\n");
    } else {
        int pid = start(words);
        if (pid > 0)
            status = wait_for(pid);
    }
    end_machine(status == 0 ? MACHINE_SUCCESS : MACHINE_FAILED);
}

_Noreturn static void run_shells(void)
{
    static char *const shell[] = {"sh", NULL};
    for (;;) {
        int pid = start(shell);
        int status = pid < 0 ? -1 : wait_for(pid);
        if (pid < 0 || status == 126 || status == 127)
            end_machine(MACHINE_FAILED);
    }
}

int main(void)
{
    open_console();
    seturgent(URGENT_ALONE); /* a policy that starves others must not delay the machine's end */
    if (boot_argument("run", command, sizeof(command)) >= 0)
        run_command();
    if (last_error() != ENOENT) {
        complain("init", "boot argument run");
        end_machine(MACHINE_FAILED);
    }
    run_shells();
}
