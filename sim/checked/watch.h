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

/* A machine as far as a policy sees it. */
struct watched {
    const uint64_t *now; /* null: its times mean nothing to people */
    const struct scheduler *scheduler;
    const struct run_queue *queues;
    const unsigned char *tasks; /* each begins with a struct task */
    size_t task_bytes;          /* from one to the next */
    uint32_t task_count;
    bool (*is_queued)(const struct task *task);
};

struct watch_call {
    const struct policy *policy;
    const char *name; /* of the hook */
    uint64_t function;
    const struct run_queue *queue; /* null: it is not called for one */
    const struct task *task;
};

/* What is about to be made and run. */
void watch_setup(const struct simulator_setup *setup);
/* From now on a hook that does not end is found, in this process. */
void watch_for_loops(void);
/* The one machine whose policy is watched; null: none is. Its first hooks are called before. */
void watch_machine(const struct watched *machine);

void watch_begin(struct watch_call call);
void watch_end(void);

/* What the hook returned. */
void watch_taken(const struct task *task, bool required);
void watch_verdict(uint32_t verdict);
void watch_slice(uint64_t slice);
void watch_cpu(uint32_t cpu, bool none_allowed);
/* How often TICK_KILL was, in all setups: no mistake by itself. */
uint64_t watch_kills(void);
/* A rule was broken: says which, as printf does, with the circumstances, and ends the program. */
__attribute__((format(printf, 1, 2))) _Noreturn void watch_broken(const char *format, ...);
/* The CPU has picked. */
void watch_decision(uint32_t cpu, const struct task *task);

#endif
