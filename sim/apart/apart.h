/* SPDX-License-Identifier: MIT */
#ifndef SIM_SEPARATE_H
#define SIM_SEPARATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/apart/message.h"

/*
 * Runs a simulator whose policy executes in a separate machine: a WebAssembly module with memory of
 * its own, so that an untrusted policy cannot reach the simulator.
 *
 * For each call of a hook, the simulator copies a message into the module's memory, calls a
 * function of the module, and copies the answer back. A process of the host can have one such
 * policy.
 */

/* The WebAssembly module of a policy. What runs it depends on the host: a library or a browser. */
struct separate_machine {
    uint64_t place; /* address of struct separate_message in the module's memory */
    uint64_t room;  /* bytes from `place` to the end of the module's memory */
    uint64_t instructions_most, calls_most;
    uint64_t calls, instructions; /* executed by the policy so far, without the transfer of
                                   * messages */
    uint32_t is_endless;          /* the policy exceeded its limit of calls or of instructions */
};

/* The module's functions, which have no parameters and no results: receive changes of tasks and
 * queues, call the hook, and write the hook's changes into the answer. */
enum separate_function { SEPARATE_HEAR, SEPARATE_SERVE, SEPARATE_ANSWER, SEPARATE_FUNCTIONS };

/* The following three functions are defined by what runs the module: sim/apart/wasmtime.c, or a
 * page in a browser. */

/* Calls a function of the module, and sets `executed` to its number of instructions. Returns
 * false if the module crashed. */
bool separate_call(struct separate_machine *machine, enum separate_function function,
                   uint64_t *executed);
/* Copies bytes from the simulator to an address in the module's memory, or back. */
void separate_write(struct separate_machine *machine, uint64_t address, const void *from,
                    size_t bytes);
void separate_read(struct separate_machine *machine, uint64_t address, void *to, size_t bytes);

/* Starts a policy in the module, and receives its description (name, hooks, tunables). Returns
 * false if the policy crashed or its description is invalid; simulator_separate_trouble() then
 * gives the reason. */
bool simulator_separate_begin(struct separate_machine *machine);
/* Returns the name of the hook that is being called, for messages. */
const char *simulator_separate_hook(void);
/* Returns the number of the run queue that the hook was called with, or NO_CPU if none. */
uint32_t simulator_separate_queue(void);
/* Returns the CPU that a hook with a queue is called for, or NO_CPU. */
uint32_t simulator_separate_cpu(void);
/* Returns true if the task of this slot is queued in the queue of the hook's call. */
bool simulator_separate_is_queued(uint32_t slot);
/* Returns the PID of the task that the hook was called with, or 0. */
int32_t simulator_separate_task_pid(void);
/* Suppresses requests for a task for a CPU where no queued task may run. If the policy's later
 * decisions differ without these requests, the requests change its order. */
void simulator_separate_silence(void);
/* Returns a message about the first task that the policy gave to a CPU where the task may not
 * run; "" if none. */
const char *simulator_separate_misplaced(void);
/* Returns the message about a rule that the policy has broken; "" if none. */
const char *simulator_separate_trouble(void);
/* Returns the number of tasks that the policy has ended by TICK_KILL so far. */
uint64_t simulator_separate_kills(void);

#endif
