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
    bool changes_task; /* it may; else it only reads what it is given */
};

/* What is about to be made and run. */
void watch_setup(const struct simulator_setup *setup);

/* What tasks that were ready to run had to wait for a CPU, in all setups so far. */
struct watch_waits {
    uint64_t longest; /* ns of simulated time, without a break */
    int32_t pid;
    uint32_t cpus;
    uint32_t never_served; /* tasks that were ready for half of a setup, and never picked */
};

struct watch_waits watch_waits(void);
void watch_forget_waits(void);
/* The setup ends here: its waits that go on are counted. */
void watch_end_of_setup(void);
/* The decisions of the next setup are kept; those of setups after that are compared with them. */
void watch_keep_decisions(void);
void watch_compare_decisions(void);
/* Returns false if a decision differed from its counterpart, or one is missing; `text` says which.
 */
bool watch_decided_the_same(char *text, size_t bytes);
/* From now on a hook that does not end is found, in this process. */
void watch_for_loops(void);
/* The one machine whose policy is watched; null: none is. Its first hooks are called before. */
void watch_machine(const struct watched *machine);

void watch_begin(struct watch_call call);
void watch_end(void);

/* How the next setups deal with a CPU for which a task is asked, and which none that is queued may
 * use: such an ask must change nothing that is decided later. */
enum asks {
    ASKS_PASS,    /* the policy is asked */
    ASKS_SILENT,  /* it is not */
    ASKS_CHECKED, /* it is, and no task may wait for longer than the policy states */
};
void watch_asks(enum asks asks);
/* Is the policy not to be asked? */
bool watch_is_silent(const struct run_queue *queue, uint32_t cpu);

/* What the hook returned, which was asked for a task for `cpu`. */
void watch_taken(const struct task *task, uint32_t cpu, bool required);
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
