/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_HOST_INTERFACE_H
#define KERNEL_DEVICE_HOST_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/layout.h"

/*
 * Spike's host interface (HTIF): a word to the host and a word from it. The host checks them
 * between turns of the CPUs. The caller ensures that at most one system call of the host is in
 * progress.
 */
enum host_call_number {
    HOST_OPEN_AT = 56,
    HOST_WRITE = 64,
};

/* Starts a system call of the host; addresses are physical, and their memory is kept until done. */
void host_call_start(enum host_call_number number, const uint64_t arguments[5]);
/* Returns true if the call is done, with its result (negative if the host reports an error).
 * Must be called until then. */
bool host_call_done(int64_t *result);

/* Ends the machine at the end of this turn of the CPU. Does nothing without a host interface. */
void host_end(int status);

#endif
