/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKED_WATCH_H
#define SIM_CHECKED_WATCH_H

#include "policies/policy.h"
#include "sim/simulator.h"

/*
 * Checks what a hook does against the rules of policies/policy.h.
 *
 * If a rule is broken, reports the hook, the task and the last decisions, and ends the program with
 * status MACHINE_BROKEN. It does the same if a sanitizer finds an error, or if a hook does not end.
 */

/* The simulated machine whose policy is checked, with what the checks need. */
struct watched {
    const uint64_t *now; /* the simulated time; null if times mean nothing to users */
    const struct scheduler *scheduler;
    const struct run_queue *queues;
    const unsigned char *tasks; /* each element begins with a struct task */
    size_t task_bytes;          /* bytes from one task to the next */
    uint32_t task_count;
    bool (*is_queued)(const struct task *task);
};

struct watch_call {
    const struct policy *policy;
    const char *name; /* the hook's name */
    uint64_t function;
    const struct run_queue *queue; /* null: the call is not about a queue */
    const struct task *task;
    bool changes_task; /* true if the hook may change the task; otherwise it may only read its
                        * arguments */
};

/* Prepares for the configuration that is about to be created and run. */
void watch_setup(const struct simulator_setup *setup);

/* Waits of ready tasks for a CPU, in all configurations so far. */
struct watch_waits {
    uint64_t longest; /* longest uninterrupted wait, in ns of simulated time */
    int32_t pid;
    uint32_t cpus;
    uint32_t never_served; /* tasks that were ready for half of a run, and never picked */
};

struct watch_waits watch_waits(void);
void watch_forget_waits(void);
/* Ends the configuration, and counts unfinished waits. */
void watch_end_of_setup(void);
/* Stores the decisions of the next configuration, for comparison with later
 * ones. */
void watch_keep_decisions(void);
void watch_compare_decisions(void);
/* Returns false if a decision differed from the stored one, or if decisions are missing. `text`
 * then describes the difference. */
bool watch_decided_the_same(char *text, size_t bytes);
/* Starts detecting hooks that do not end, in this process. */
void watch_for_loops(void);
/* Sets the machine whose policy is checked; null: none. (The first hooks are called before this,
 * while the machine is created.) */
void watch_machine(const struct watched *machine);

void watch_begin(struct watch_call call);
void watch_end(void);

/* Whether to ask the policy for a task for a CPU that no queued task may use. Asking must not
 * change later decisions. */
enum asks {
    ASKS_PASS,    /* ask the policy */
    ASKS_SILENT,  /* do not ask */
    ASKS_CHECKED, /* ask, and check that no task waits for longer than the policy declares */
};
void watch_asks(enum asks asks);
/* Returns true if the host must not ask the policy for a task for this CPU (see ASKS_SILENT). */
bool watch_is_silent(const struct run_queue *queue, uint32_t cpu);

/* Checks the task that a hook returned for `cpu`. `required`: null would be wrong. */
void watch_taken(const struct task *task, uint32_t cpu, bool required);
void watch_verdict(uint32_t verdict);
void watch_slice(uint64_t slice);
void watch_cpu(uint32_t cpu, bool none_allowed);
/* Returns how many tasks were ended by TICK_KILL in all configurations, which breaks no rule. */
uint64_t watch_kills(void);
/* Reports a broken rule and its circumstances, and ends the program. The message is formatted as by
 * printf. */
__attribute__((format(printf, 1, 2))) _Noreturn void watch_broken(const char *format, ...);
/* Notes a decision of the policy: which task the CPU picked. */
void watch_decision(uint32_t cpu, const struct task *task);

#endif
