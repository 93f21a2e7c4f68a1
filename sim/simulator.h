/* SPDX-License-Identifier: MIT */
#ifndef SIM_SIMULATOR_H
#define SIM_SIMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/workload_steps.h"

/*
 * A machine of several CPUs without a kernel: a discrete-event simulation that runs the policies of
 * policies/ under a workload and writes the event trace of docs/trace-format.md. docs/simulator.md
 * describes its behaviour.
 *
 * All state is in `struct simulator`; there are no other variables. Several simulators may be used
 * at once, each by one thread at a time. The same setup and workload give the same trace, byte for
 * byte. Times are nanoseconds.
 *
 * A function that fails returns false and the reason in `error`, which is never null.
 */

#define SIMULATOR_PROCESSES_MAX (1u << 24)
#define SIMULATOR_CHANNELS_MAX  (1u << 20)
#define SIMULATOR_STEPS_MAX     (1u << 30)
#define SIMULATOR_ADDED_MAX     (1u << 24) /* steps */

struct simulator_error {
    char text[280]; /* the cause and, if there is one, the remedy; no full stop, no new line */
};

/* ---- processes: the steps are those of abi/workload_steps.h ---- */

/* A list of steps; the last one is STEP_EXIT. A process runs one program. */
struct simulator_program {
    const char *name;
    const struct workload_step *steps;
    uint32_t count;
};

/* The first process runs program 0; the run ends with it. */
struct simulator_workload {
    const struct simulator_program *programs;
    uint32_t program_count;
    const char *const *texts;
    uint32_t text_count;
    const uint64_t *channels; /* the number of items in each at the start */
    uint32_t channel_count;
};

/* ---- the machine ---- */

/* A different cost under a policy, or one of its presets. */
struct simulator_policy_cost {
    char policy[40]; /* "name" or "name:preset" */
    uint32_t cost;   /* its index in the list of docs/simulator.md */
    uint64_t value;
};

#define SIMULATOR_POLICY_COSTS_MAX 128

/* Costs of operations; see docs/simulator.md. */
struct simulator_costs {
    uint64_t boot;      /* until the workload begins; its times start there */
    uint64_t stagger;   /* from a CPU's tick to the next CPU's tick; half a tick in all, at most */
    uint64_t scheduler; /* of a decision */
    uint64_t crowd;     /* of a decision, additionally for each 100 waiting processes */
    uint64_t context_switch; /* of loading another process, or idling, additionally */
    uint64_t tick;           /* of each tick */
    uint64_t wakeup;         /* of each process that a timer wakes */
    uint64_t interrupt;      /* until a CPU notices that another one wants it to pick again */
    uint64_t migration;      /* additional computing of a process after it was moved to another
                              * CPU */
    uint64_t call;           /* of each act except those below, and except computing */
    uint64_t sleep;          /* until the process sleeps */
    uint64_t pipe;           /* of putting something into a channel, or taking it out */
    uint64_t fork;           /* until the child exists */
    uint64_t fork_look;      /* the part of that until the kernel checks for interrupts */
    uint64_t fork_new;       /* additional, if the number of processes reaches a new maximum */
    uint64_t fork_return;    /* until its parent continues */
    uint64_t first_run;      /* until a new process does its first step */
    uint64_t exit;
    uint64_t reap; /* of a child that has ended, by its parent */
    /* Not a cost, but an order: a computation that ends at the time of a tick precedes the tick.
     * The tick does not count for a process that has just been picked. */
    uint64_t bursts_first;
    uint32_t policy_count;
    struct simulator_policy_cost policies[SIMULATOR_POLICY_COSTS_MAX];
};

/* Only computing takes time. */
extern const struct simulator_costs simulator_costs_none;
/* Returns the costs of the schedlab kernel on Spike: sim/costs/kernel.json. */
struct simulator_costs simulator_costs_kernel(void);

/* Reads "kernel", "none", or "textbook", which is none with `bursts_first`. Changes may follow,
 * for all policies or for one; "+=" adds to each policy's value:
 * "kernel,fork=20000,scheduler.lottery=600,exit+=9000". */
bool simulator_read_costs(struct simulator_costs *costs, const char *text,
                          struct simulator_error *error);

struct simulator_setup {
    const char *policy;   /* "name", "name:preset" or a number */
    const char *tunables; /* "name=value,name=value"; null or empty: none */
    uint32_t cpus;        /* 1 to 1,024 */
    uint32_t processes;   /* the most that may live at once; 0: 4096 */
    uint64_t tick_ns;
    uint64_t seed;
    struct simulator_costs costs;
    const char *shape; /* as in policies/support/shape_text.h; null or empty: all CPUs are alike */
    const char *trace; /* file to write; null: no trace */
    bool trace_queues; /* it also has a record for each queued process: TRACE_QUEUED */
    /* The most that workloads added during the run may have (sim/control.h): steps, and
     * programs, channels, texts and shared timers. 0: none can be added. */
    uint32_t added_steps;
    /* Added to all times that the policy sees, and to the run time of each new task, so that a
     * policy can be tested where numbers wrap. Nothing else changes with them. */
    uint64_t policy_clock;
    uint64_t policy_run_time;
};

enum simulator_status {
    SIMULATOR_TIME, /* all events up to the given time have happened */
    SIMULATOR_DONE, /* the first process has ended */
    SIMULATOR_FAILED,
};

struct simulator_counts {
    uint64_t now;
    uint64_t decisions; /* a process was picked */
    uint64_t switches;  /* to another process */
    uint64_t idle_switches;
    uint64_t ticks; /* of CPUs that ran a process */
    uint64_t forks;
    uint64_t wakeups;
    uint64_t migrations;
    uint64_t records;       /* of the trace */
    uint64_t idle_time;     /* over all CPUs */
    uint64_t process_bytes; /* of memory, for each process that may live */
    int64_t exit_status;    /* of the first process; -1: it has not ended, or was ended */
    uint32_t processes;     /* that live, or wait to be reaped */
};

struct simulator;

/* Returns null on failure. The workload is copied. */
struct simulator *simulator_create(const struct simulator_setup *setup,
                                   const struct simulator_workload *workload,
                                   struct simulator_error *error);
/* Runs until `until`. May be called repeatedly; after SIMULATOR_DONE and SIMULATOR_FAILED it
 * returns the same. */
enum simulator_status simulator_run(struct simulator *simulator, uint64_t until,
                                    struct simulator_error *error);
/* Returns the time of the next event, which simulator_run() until then will process. UINT64_MAX:
 * there is none, or the run has ended. */
uint64_t simulator_next(const struct simulator *simulator);
void simulator_count(const struct simulator *simulator, struct simulator_counts *counts);
/* Ensures that all records so far are in the trace's file. */
bool simulator_flush(struct simulator *simulator, struct simulator_error *error);
/* Writes the rest of the trace, and its end. Nothing can be run after it. */
bool simulator_finish(struct simulator *simulator, struct simulator_error *error);
/* Null is allowed. */
void simulator_destroy(struct simulator *simulator);

/*
 * Checks that each process is in exactly one place, and that all counts agree. Returns false with
 * the error. For tests: it visits all processes.
 */
bool simulator_audit(const struct simulator *simulator, struct simulator_error *error);
/* Takes all queued processes from the policy, and fails if they are not exactly the queued ones.
 * Nothing can be run after it. */
bool simulator_drain(struct simulator *simulator, struct simulator_error *error);

#endif
