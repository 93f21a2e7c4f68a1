/* SPDX-License-Identifier: MIT */
#ifndef SIM_CHECKED_WATCH_H
#define SIM_CHECKED_WATCH_H

#include "policies/policy.h"
#include "sim/simulator.h"

/*
 * Checks a hook's actions against the rules of policies/policy.h. A broken rule is reported with
 * the hook, the task and the last decisions, and ends the program with MACHINE_BROKEN. The same
 * happens for an error that a sanitizer finds, and for a hook that does not end.
 */

/* The policy's view of a machine. */
struct watched {
    const uint64_t *now; /* null: its times have no meaning for users */
    const struct scheduler *scheduler;
    const struct run_queue *queues;
    const unsigned char *tasks; /* each begins with a struct task */
    size_t task_bytes;          /* distance from one task to the next */
    uint32_t task_count;
    bool (*is_queued)(const struct task *task);
};

struct watch_call {
    const struct policy *policy;
    const char *name; /* of the hook */
    uint64_t function;
    const struct run_queue *queue; /* null: the call is not about a queue */
    const struct task *task;
    bool changes_task; /* the hook may change the task; else it only reads its arguments */
};

/* Prepares for the configuration that is about to be created and run. */
void watch_setup(const struct simulator_setup *setup);

/* Waits of ready tasks for a CPU, in all configurations so far. */
struct watch_waits {
    uint64_t longest; /* ns of simulated time, uninterrupted */
    int32_t pid;
    uint32_t cpus;
    uint32_t never_served; /* tasks that were ready for half of a configuration, and never picked */
};

struct watch_waits watch_waits(void);
void watch_forget_waits(void);
/* Ends the configuration: unfinished waits are counted. */
void watch_end_of_setup(void);
/* Saves the decisions of the next configuration, for comparison with those of later ones. */
void watch_keep_decisions(void);
void watch_compare_decisions(void);
/* Returns false if a decision differed from its counterpart, or one is missing; `text` describes
 * it. */
bool watch_decided_the_same(char *text, size_t bytes);
/* Starts detecting hooks that do not end, in this process. */
void watch_for_loops(void);
/* Sets the one machine whose policy is checked; null: none. Its first hooks are called before. */
void watch_machine(const struct watched *machine);

void watch_begin(struct watch_call call);
void watch_end(void);

/* What the next configurations do when a CPU asks for a task and no queued task may use the CPU:
 * such a request must not affect later decisions. */
enum asks {
    ASKS_PASS,    /* the policy is asked */
    ASKS_SILENT,  /* it is not */
    ASKS_CHECKED, /* the policy is asked, and no task may wait for longer than it declares */
};
void watch_asks(enum asks asks);
/* Returns true if the policy must not be asked. */
bool watch_is_silent(const struct run_queue *queue, uint32_t cpu);

/* Checks the result of a hook that was asked for a task for `cpu`. */
void watch_taken(const struct task *task, uint32_t cpu, bool required);
void watch_verdict(uint32_t verdict);
void watch_slice(uint64_t slice);
void watch_cpu(uint32_t cpu, bool none_allowed);
/* Returns the number of TICK_KILLs in all configurations: not an error by itself. */
uint64_t watch_kills(void);
/* Reports a broken rule, formatted as by printf, with its circumstances, and ends the program. */
__attribute__((format(printf, 1, 2))) _Noreturn void watch_broken(const char *format, ...);
/* Records a decision: the CPU has picked. */
void watch_decision(uint32_t cpu, const struct task *task);

#endif
