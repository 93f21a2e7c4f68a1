/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_HOST_H
#define KERNEL_DEVICE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the machine; the host sees the status (0: success). Spike's host interface, or QEMU's test
 * device. */
_Noreturn void machine_power_off(int status);

/*
 * The exit of trace blocks: a host file by Spike's host interface, or a virtio console on QEMU. One
 * block at a time; the caller keeps the memory until it is done. The measured CPU never waits.
 */
bool trace_output_init(void);                             /* false: there is none */
bool trace_output_start(const void *block, size_t bytes); /* false: another block is in progress */
bool trace_output_busy(void);                             /* also advances the transfer: may be
                                                           * polled */

#endif
