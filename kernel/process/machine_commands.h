/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_PROCESS_MACHINE_COMMANDS_H
#define KERNEL_PROCESS_MACHINE_COMMANDS_H

/* Starts accepting the machine's commands (abi/machine_commands.h). Called at boot, once the
 * files of /proc exist. */
void machine_commands_init(void);

#endif
