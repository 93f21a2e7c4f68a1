/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKED_WATCH_H
#define SIM_CHECKED_WATCH_H

#include "policies/policy.h"
#include "sim/simulator.h"

/*
 * What a hook does is held against the rules of policies/policy.h. A rule that is broken is
 * said in words, with the hook, the task and the last decisions, and ends the program with
 * MACHINE_BROKEN. So is what a sanitizer finds, and a hook that does not end.
 */

struct watch_call {
    const struct policy *policy;
    const char *name; /* of the hook */
    uint64_t function;
    const struct run_queue *queue; /* null: it is not called for one */
    const struct task *task;
};

/* What is about to be made and run. */
void watch_setup(const struct simulator_setup *setup);
/* The one simulator whose policy is watched; null: none is. Its first hooks are called before. */
void watch_simulator(const struct simulator *simulator);

void watch_begin(struct watch_call call);
void watch_end(void);

/* What the hook returned. */
void watch_taken(const struct task *task, bool required);
void watch_verdict(uint32_t verdict);
void watch_slice(uint64_t slice);
void watch_cpu(uint32_t cpu, bool none_allowed);
/* How often TICK_KILL was, in all setups: no mistake by itself. */
uint64_t watch_kills(void);
/* The CPU has picked. */
void watch_decision(uint32_t cpu, const struct task *task);

#endif
