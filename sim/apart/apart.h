/* SPDX-License-Identifier: MIT */
#ifndef SIM_APART_APART_H
#define SIM_APART_APART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/apart/message.h"

/*
 * A simulator whose one policy is in a machine of its own: at each hook the message is copied into
 * the machine's memory, its function is called, and the answer is copied back. There is one such
 * policy in a process.
 */

/* A policy's machine. What runs it is a library of WebAssembly that the caller has loaded: its C
 * functions are handed over as addresses, so that nothing is linked with it. */
struct apart_machine {
    void *context;                     /* wasmtime_context_t */
    const void *hear, *serve, *answer; /* wasmtime_func_t, without parameters and results */
    unsigned char *memory;             /* the machine's message */
    uint64_t place;                    /* bytes of the machine's memory before it */
    uint64_t room;                     /* and from there to the end */
    uint64_t hook_instructions, instructions_most, calls_most;
    void *(*set_fuel)(void *context, uint64_t fuel);
    void *(*get_fuel)(const void *context, uint64_t *fuel);
    void *(*call)(void *context, const void *function, void *arguments_and_results, size_t,
                  void **trap);

    uint64_t calls, instructions; /* up to now: the policy's own, without what carries calls */
    /* Why it has stopped: one of these, or none. They are the caller's to free. */
    void *error, *trap;
    uint32_t is_endless; /* it has had more calls or instructions than it may */
};

/* Begins with another policy, which describes itself. Returns false if it broke down, or if what it
 * says of itself cannot be: answer.trouble has the words. */
bool simulator_apart_begin(struct apart_machine *machine);
/* The name of the hook that is called, and the words about a rule that was broken. */
const char *simulator_apart_hook(void);
const char *simulator_apart_trouble(void);
/* How many tasks it has ended by TICK_KILL since then. */
uint64_t simulator_apart_kills(void);

#endif
