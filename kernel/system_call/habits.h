/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SYSTEM_CALL_HABITS_H
#define KERNEL_SYSTEM_CALL_HABITS_H

#include "system_call/course_calls.h"

/*
 * Applies the boot arguments exec-delay, recheck and count-picks: puts calls into the table that
 * behave as in another kernel. So the default calls need no checks.
 */
void habits_init(struct system_call *table);

#endif
