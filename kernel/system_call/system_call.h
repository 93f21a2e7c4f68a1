/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SYSTEM_CALL_SYSTEM_CALL_H
#define KERNEL_SYSTEM_CALL_SYSTEM_CALL_H

struct trap_frame;

/* Serves the call that a program made, and leaves its result in the frame. */
void system_call(struct trap_frame *frame);

#endif
