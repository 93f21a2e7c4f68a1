/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_PROCESS_MACHINE_COMMANDS_H
#define KERNEL_PROCESS_MACHINE_COMMANDS_H

/* At boot, once there are the files of /proc: from now on the machine is obeyed
 * (abi/machine_commands.h). */
void machine_commands_init(void);

#endif
