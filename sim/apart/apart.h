/* SPDX-License-Identifier: MIT */
#ifndef SIM_SEPARATE_H
#define SIM_SEPARATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/apart/message.h"

/*
 * A simulator whose one policy runs in a separate machine. For each hook the message is copied into
 * the machine's memory, its function is called, and the answer is copied back. A process of the
 * host has at most one such policy.
 */

/* A policy's machine, whatever library runs it. */
struct separate_machine {
    uint64_t place; /* address of the message in the machine's memory */
    uint64_t room;  /* bytes from `place` to the memory's end */
    uint64_t instructions_most, calls_most;
    uint64_t calls, instructions; /* executed by the policy so far, excluding transfers */
    uint32_t is_endless;          /* the policy exceeded its limit of calls or instructions */
};

/* The machine's functions, without parameters and results. */
enum separate_function { SEPARATE_HEAR, SEPARATE_SERVE, SEPARATE_ANSWER, SEPARATE_FUNCTIONS };

/* These three are implemented by what runs the machine: wasmtime.c, or the page's browser. */

/* Calls a function and returns in `executed` the number of its instructions. Returns false if it
 * crashed. */
bool separate_call(struct separate_machine *machine, enum separate_function function,
                   uint64_t *executed);
/* Copy between the simulator's memory and an address of the machine's memory. */
void separate_write(struct separate_machine *machine, uint64_t address, const void *from,
                    size_t bytes);
void separate_read(struct separate_machine *machine, uint64_t address, void *to, size_t bytes);

/* Starts another policy, and receives its description. Returns false if the policy crashed, or if
 * its description is invalid: answer.trouble then contains the reason. */
bool simulator_separate_begin(struct separate_machine *machine);
/* Returns the name of the hook in progress. */
const char *simulator_separate_hook(void);
/* Returns the number of the queue in the hook's call, or NO_CPU if the call has no queue. */
uint32_t simulator_separate_queue(void);
/* Returns the message about a broken rule. */
const char *simulator_separate_trouble(void);
/* Returns the number of tasks that the policy has ended by TICK_KILL since the start. */
uint64_t simulator_separate_kills(void);

#endif
