/* SPDX-License-Identifier: MIT */

/* Runs a policy's machine (sim/apart/apart.h) in the page's browser: as another WebAssembly
 * instance, with its own memory, which the page's script calls. */

#include "sim/apart/apart.h"

#define IMPORTED(name) __attribute__((import_module("policy"), import_name(#name)))
#define EXPORTED(name) __attribute__((export_name(#name), used)) name

IMPORTED(call) bool policy_call(uint32_t function, uint64_t *executed);
IMPORTED(write) void policy_write(uint32_t address, const void *from, uint32_t bytes);
IMPORTED(read) void policy_read(uint32_t address, void *to, uint32_t bytes);

/* The page limits a hook's basic blocks itself; instructions are counted as blocks. */
#define INSTRUCTIONS_MOST 4000000000
#define CALLS_MOST        2000000

static struct separate_machine machine;

bool separate_call(struct separate_machine *called, enum separate_function function,
                   uint64_t *executed)
{
    (void)called;
    return policy_call(function, executed);
}

void separate_write(struct separate_machine *called, uint64_t address, const void *from,
                    size_t bytes)
{
    (void)called;
    policy_write((uint32_t)address, from, bytes);
}

void separate_read(struct separate_machine *called, uint64_t address, void *to, size_t bytes)
{
    (void)called;
    policy_read((uint32_t)address, to, bytes);
}

/* Starts with a policy whose message is at this address of its memory. Returns false if it cannot
 * be used; policy_trouble() gives the reason. */
bool EXPORTED(policy_begin)(uint32_t place, uint32_t memory_bytes)
{
    machine = (struct separate_machine){
        .place = place,
        .room = memory_bytes - place,
        .instructions_most = INSTRUCTIONS_MOST,
        .calls_most = CALLS_MOST,
    };
    return simulator_separate_begin(&machine);
}

/* Limits the calls of hooks in a run. */
void EXPORTED(policy_limit_calls)(uint64_t most)
{
    machine.calls_most = most;
}

const char *EXPORTED(policy_trouble)(void)
{
    return machine.is_endless ? "its run does not end: the policy is asked again and again"
                              : simulator_separate_trouble();
}

const char *EXPORTED(policy_hook)(void)
{
    return simulator_separate_hook();
}

/* The CPU that the hook is called for, or NO_CPU. */
uint32_t EXPORTED(policy_cpu)(void)
{
    return simulator_separate_cpu();
}

/* The number of the queue that the hook is called with, or NO_CPU. */
uint32_t EXPORTED(policy_queue)(void)
{
    return simulator_separate_queue();
}

/* The number of tasks that the policy has ended by TICK_KILL. */
uint64_t EXPORTED(policy_kills)(void)
{
    return simulator_separate_kills();
}

/* The functions of the same names: sim/apart/apart.h. */
int32_t EXPORTED(policy_task_pid)(void)
{
    return simulator_separate_task_pid();
}

void EXPORTED(policy_silence)(void)
{
    simulator_separate_silence();
}

const char *EXPORTED(policy_misplaced)(void)
{
    return simulator_separate_misplaced();
}

bool EXPORTED(policy_is_queued)(uint32_t slot)
{
    return simulator_separate_is_queued(slot);
}
