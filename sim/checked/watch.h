/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKED_WATCH_H
#define SIM_CHECKED_WATCH_H

#include "policies/policy.h"
#include "sim/simulator.h"

/*
 * Checks a hook's actions against the rules of policies/policy.h. A broken rule ends the program
 * with MACHINE_BROKEN, after a report with the hook, the task and the last decisions. An error
 * found by a sanitizer, and a hook that does not end, are handled in the same way.
 */

/* The policy's view of a machine. */
struct watched {
    const uint64_t *now; /* null: times have no meaning for users */
    const struct scheduler *scheduler;
    const struct run_queue *queues;
    const unsigned char *tasks; /* each element begins with a struct task */
    size_t task_bytes;          /* distance from one task to the next */
    uint32_t task_count;
    bool (*is_queued)(const struct task *task);
};

struct watch_call {
    const struct policy *policy;
    const char *name; /* the hook's name */
    uint64_t function;
    const struct run_queue *queue; /* null: the call is not about a queue */
    const struct task *task;
    bool changes_task; /* true if the hook may change the task; other hooks only read their
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
/* Saves the decisions of the next configuration. Decisions of later configurations are compared
 * with them. */
void watch_keep_decisions(void);
void watch_compare_decisions(void);
/* Returns false if a decision differed from the saved one, or if a decision is missing. `text` then
 * describes the difference. */
bool watch_decided_the_same(char *text, size_t bytes);
/* Starts detecting hooks that do not end, in this process. */
void watch_for_loops(void);
/* Sets the one machine whose policy is checked; null: none. Creating the machine calls its first
 * hooks before this function. */
void watch_machine(const struct watched *machine);

void watch_begin(struct watch_call call);
void watch_end(void);

/* The behaviour of the next configurations when a CPU needs a task, and no queued task may run on
 * this CPU. Asking the policy in this situation must not affect later decisions. */
enum asks {
    ASKS_PASS,    /* ask the policy */
    ASKS_SILENT,  /* do not ask the policy */
    ASKS_CHECKED, /* ask the policy; no task may wait for longer than the policy declares */
};
void watch_asks(enum asks asks);
/* Returns true if the host must not ask the policy for a task for this CPU (ASKS_SILENT). */
bool watch_is_silent(const struct run_queue *queue, uint32_t cpu);

/* Checks the result of a hook that was asked for a task for `cpu`. */
void watch_taken(const struct task *task, uint32_t cpu, bool required);
void watch_verdict(uint32_t verdict);
void watch_slice(uint64_t slice);
void watch_cpu(uint32_t cpu, bool none_allowed);
/* Returns the number of TICK_KILLs in all configurations. Such a verdict is not an error. */
uint64_t watch_kills(void);
/* Reports a broken rule and its circumstances, and ends the program. The message is formatted as by
 * printf. */
__attribute__((format(printf, 1, 2))) _Noreturn void watch_broken(const char *format, ...);
/* Records a decision: the CPU has picked. */
void watch_decision(uint32_t cpu, const struct task *task);

#endif
