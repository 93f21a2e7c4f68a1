/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_HOST_INTERFACE_H
#define KERNEL_DEVICE_HOST_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/layout.h"

/*
 * Spike's host interface (HTIF): a word to the host and a word from it. The host
 * looks at them between turns of the CPUs. One system call of the host may be
 * under way; the caller sees to that.
 */
enum host_call_number {
    HOST_OPEN_AT = 56,
    HOST_WRITE = 64,
};

/* Asks the host for a system call; addresses are physical, and their memory is kept until done. */
void host_call_start(enum host_call_number number, const uint64_t arguments[5]);
/* Returns true if the call is done, with its result (negative if the host reports an error). It is
 * asked until then. */
bool host_call_done(int64_t *result);

/* Ends the machine at the end of this turn of the CPU. Without a host interface: nothing happens.
 */
void host_end(int status);

#endif
