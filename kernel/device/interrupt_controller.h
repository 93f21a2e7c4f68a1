/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_INTERRUPT_CONTROLLER_H
#define KERNEL_DEVICE_INTERRUPT_CONTROLLER_H

#include <stdint.h>

/* The platform-level interrupt controller (RISC-V PLIC 1.0). */
void interrupt_controller_init(void);     /* once */
void interrupt_controller_init_cpu(void); /* on each CPU: accept all that is enabled */
/* Calls `handler` with `context` when the source asks, on CPU 0. */
void interrupt_enable(uint32_t source, void (*handler)(void *context), void *context);
/* Once: calls `handler` with `context` when CPU 0 is interrupted and no source asks. */
void interrupt_unclaimed(void (*handler)(void *context), void *context);
/* Called by the trap handler: serves all that is pending. */
void interrupt_controller_handle(void);

#endif
