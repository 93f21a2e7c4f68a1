/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_BOOT_START_H
#define KERNEL_BOOT_START_H

/* Starts the other CPUs. Called once, by the first process. So that process always runs on the
 * boot CPU, even if another CPU would have looked for work first. */
void boot_release_other_cpus(void);

#endif
