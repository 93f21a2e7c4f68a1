/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_DEVICE_INTERRUPT_CONTROLLER_H
#define KERNEL_DEVICE_INTERRUPT_CONTROLLER_H

#include <stdint.h>

/* The platform-level interrupt controller (RISC-V PLIC 1.0). */
void interrupt_controller_init(void);     /* once */
void interrupt_controller_init_cpu(void); /* on each CPU: accepts all enabled sources */
/* Calls `handler` with `context` when the source interrupts, on CPU 0. */
void interrupt_enable(uint32_t source, void (*handler)(void *context), void *context);
/* Must be called at most once: calls `handler` with `context` when CPU 0 is interrupted without
 * a source. */
void interrupt_unclaimed(void (*handler)(void *context), void *context);
/* Called by the trap handler: serves all pending sources. */
void interrupt_controller_handle(void);

#endif
