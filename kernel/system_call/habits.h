/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SYSTEM_CALL_HABITS_H
#define KERNEL_SYSTEM_CALL_HABITS_H

#include "system_call/course_calls.h"

/*
 * Obeys the boot arguments exec-delay, recheck and count-picks: puts calls into the
 * table that go as on another kernel. The usual calls do not ask whether they shall.
 */
void habits_init(struct system_call *table);

#endif
