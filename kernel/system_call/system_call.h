/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SYSTEM_CALL_SYSTEM_CALL_H
#define KERNEL_SYSTEM_CALL_SYSTEM_CALL_H

struct trap_frame;

/* At boot: the boot arguments may give calls more numbers. */
void system_calls_init(void);
/* Serves the call that a program made, and leaves its result in the frame. */
void system_call(struct trap_frame *frame);

#endif
