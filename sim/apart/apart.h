/* SPDX-License-Identifier: MIT */
#ifndef SIM_APART_APART_H
#define SIM_APART_APART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/apart/message.h"

/*
 * A simulator whose one policy runs in a separate machine. For each hook the message is copied into
 * the machine's memory, its function is called, and the answer is copied back. A process has one
 * such policy.
 */

/* A policy's machine. A library of WebAssembly that the caller has loaded runs it: its C
 * functions are passed as addresses, so that nothing is linked with it. */
struct apart_machine {
    void *context;                     /* wasmtime_context_t */
    const void *hear, *serve, *answer; /* wasmtime_func_t, without parameters and results */
    unsigned char *memory;             /* the machine's message */
    uint64_t place;                    /* bytes of the machine's memory before the message */
    uint64_t room;                     /* and from the message to the end */
    uint64_t hook_instructions, instructions_most, calls_most;
    void *(*set_fuel)(void *context, uint64_t fuel);
    void *(*get_fuel)(const void *context, uint64_t *fuel);
    void *(*call)(void *context, const void *function, void *arguments_and_results, size_t,
                  void **trap);

    uint64_t calls, instructions; /* so far: the policy's own, excluding transfers */
    /* Why it has stopped: one of these, or none. The caller frees them. */
    void *error, *trap;
    uint32_t is_endless; /* it exceeded its limit of calls or instructions */
};

/* Starts with another policy, which describes itself. Returns false if it crashed, or if its
 * description is invalid: answer.trouble contains the reason. */
bool simulator_apart_begin(struct apart_machine *machine);
/* Returns the name of the hook that is called, and the text about a broken rule. */
const char *simulator_apart_hook(void);
const char *simulator_apart_trouble(void);
/* Returns the number of tasks that the policy has ended by TICK_KILL since the start. */
uint64_t simulator_apart_kills(void);

#endif
