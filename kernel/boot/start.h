/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_BOOT_START_H
#define KERNEL_BOOT_START_H

/* Lets the other CPUs begin. Once, by the first process: so it runs where the boot did, whichever
 * CPU would have been the first to look for work. */
void boot_release_other_cpus(void);

#endif
