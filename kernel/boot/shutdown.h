/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_BOOT_SHUTDOWN_H
#define KERNEL_BOOT_SHUTDOWN_H

#include <stdint.h>

/* Ends the machine in an orderly way, with a complete trace. The caller holds no lock. */
_Noreturn void shutdown(int status);
/* Does the same with MACHINE_LIMIT, once the time of the boot argument `limit` has come. */
void shutdown_at_limit(uint64_t now);

#endif
