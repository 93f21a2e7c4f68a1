/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_PROCESS_EXEC_H
#define KERNEL_PROCESS_EXEC_H

/* Replaces the current process's program. Returns argc, or an error and nothing has changed. */
int process_execute(const char *path, char *const arguments[]);

#endif
