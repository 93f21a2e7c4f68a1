/* SPDX-License-Identifier: MIT */
#ifndef SIM_APART_APART_H
#define SIM_APART_APART_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/apart/message.h"

/*
 * A simulator whose one policy is in a machine of its own: each hook is a call of a function, which
 * carries the message there and the answer back. There is one such policy in a process.
 */

/* Carries `bytes` of the call, and the answer back. Returns false if the policy's machine has
 * broken down: the run fails then. */
typedef bool apart_carrier(uint64_t bytes);

/* The message that is carried. */
struct apart_message *simulator_apart_message(void);
/* Begins with another policy, which describes itself. Returns false if it broke down, or if what it
 * says of itself cannot be: answer.trouble has the words. */
bool simulator_apart_begin(apart_carrier *carrier);
/* Bytes of the message's answer, behind which the call begins. */
uint64_t simulator_apart_answer_bytes(void);
/* The name of the hook that is called, and the words about a rule that was broken. */
const char *simulator_apart_hook(void);
const char *simulator_apart_trouble(void);
/* How many hooks were called since simulator_apart_begin(). */
uint64_t simulator_apart_calls(void);
/* How many tasks it has ended by TICK_KILL since then. */
uint64_t simulator_apart_kills(void);

#endif
