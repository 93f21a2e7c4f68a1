/* SPDX-License-Identifier: MIT */
#ifndef USER_LIBRARY_PROGRAM_H
#define USER_LIBRARY_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "user/library/system.h"

/*
 * Runs a program in place of the caller: a name without a slash is searched in the root directory,
 * then in the working directory. Returns only on failure: -1, and last_error() has the reason.
 */
int exec_program(char *const arguments[]);

/* exec_program() for commands that run others. On failure prints the error, and exits with
 * status 127 when there is no such program and 126 otherwise. */
_Noreturn void become_program(const char *caller, char *const arguments[]);

/* fstat() by path. Returns 0 or -1. */
int file_status_of(const char *path, struct file_status *status);

/* Returns the argument as a number within [minimum, maximum]; otherwise prints an error and
 * exits with status 2. */
int64_t number_argument(const char *program, const char *text, int64_t minimum, int64_t maximum);

/* A command that sets an attribute, of a program that it runs or of an existing process. */
struct attribute_command {
    const char *name;
    int (*set)(int pid, int value);
    const char *usage;
};
int run_attribute_command(const struct attribute_command *command, int argc, char *argv[]);

/* Returns all rows of getpinfo(), in memory from malloc(), or null if memory is short. */
struct process_info *process_table(int *count);

#endif
