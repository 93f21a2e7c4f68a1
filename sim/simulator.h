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
 * All state is in `struct simulator`, so several simulators may be used at once, each by one thread
 * at a time. The same setup and workload give the same trace, byte for byte. Times are nanoseconds.
 *
 * A function that fails returns false and the reason in `error`, which is never null.
 */

#define SIMULATOR_PROCESSES_MAX (1u << 24)
#define SIMULATOR_CHANNELS_MAX  (1u << 20)
#define SIMULATOR_STEPS_MAX     (1u << 30)
#define SIMULATOR_ADDED_MAX     (1u << 24) /* steps */

struct simulator_error {
    char text[280]; /* the cause and, if known, the fix, without a full stop or line feed */
};

/* ---- processes: the steps are those of abi/workload_steps.h ---- */

/* A list of steps; the last one is STEP_EXIT. A process runs one program. */
struct simulator_program {
    const char *name;
    const struct workload_step *steps;
    uint32_t count;
};

/* The programs of a run. The first process runs program 0; when this process ends, the run ends. */
struct simulator_workload {
    const struct simulator_program *programs;
    uint32_t program_count;
    const char *const *texts;
    uint32_t text_count;
    const uint64_t *channels; /* the number of items in each channel at the start */
    uint32_t channel_count;
};

/* ---- the machine ---- */

/* A cost that applies only under one policy, or one of its presets. */
struct simulator_policy_cost {
    char policy[40]; /* "name" or "name:preset" */
    uint32_t cost;   /* its index in the list of docs/simulator.md */
    uint64_t value;
};

#define SIMULATOR_POLICY_COSTS_MAX 128

/* Costs of operations; see docs/simulator.md. */
struct simulator_costs {
    uint64_t boot;           /* until the workload begins; the workload's times count from then */
    uint64_t stagger;        /* from a CPU to the next CPU; at most half a tick in all */
    uint64_t scheduler;      /* of each decision */
    uint64_t crowd;          /* of each decision, in addition, for each 100 waiting processes */
    uint64_t context_switch; /* of each switch to another process, or to idling, in addition */
    uint64_t tick;           /* of each tick */
    uint64_t wakeup;         /* of each process that a timer wakes */
    uint64_t interrupt;      /* from the request of another CPU until a CPU picks again */
    uint64_t migration;      /* additional computing of a process after it was moved to another
                              * CPU */
    uint64_t call;           /* of each act without a separate cost below */
    uint64_t sleep;          /* until the process sleeps */
    uint64_t pipe;           /* of putting items into a channel, or taking them out */
    uint64_t fork;           /* until the child exists */
    uint64_t fork_look;      /* the part of `fork` until the kernel checks for interrupts */
    uint64_t fork_new;       /* added to `fork` if the number of processes reaches a new maximum */
    uint64_t fork_return;    /* from the child's existence until its parent continues */
    uint64_t first_run;      /* until a new process does its first step */
    uint64_t exit;
    uint64_t reap;         /* of reaping a child that has ended */
    uint64_t arrival;      /* of the first CPU, for each process that arrives */
    uint64_t instructions; /* of 1,000 instructions of a sched_ext scheduler */
    /* Not a cost: if not 0, a computation that ends at the time of a tick precedes the tick. The
     * tick does not count for a process that has just been picked. */
    uint64_t bursts_first;
    uint32_t policy_count;
    struct simulator_policy_cost policies[SIMULATOR_POLICY_COSTS_MAX];
};

/* All costs are 0: only computing takes time. */
extern const struct simulator_costs simulator_costs_none;
/* Returns the costs of the schedlab kernel on Spike: sim/costs/kernel.json. */
struct simulator_costs simulator_costs_kernel(void);

/* Parses costs: "kernel", "none", or "textbook" (none, with `bursts_first`). Changes may follow,
 * for all policies or for one policy. "+=" adds to the value under each policy:
 * "kernel,fork=20000,scheduler.lottery=600,exit+=9000". */
bool simulator_read_costs(struct simulator_costs *costs, const char *text,
                          struct simulator_error *error);

struct simulator_setup {
    const char *policy;   /* "name", "name:preset" or a number */
    const char *tunables; /* "name=value,name=value"; null or empty: none */
    uint32_t cpus;        /* 1 to 1,024 */
    uint32_t processes;   /* maximum number of simultaneous processes; 0: 4096 */
    uint64_t tick_ns;
    uint64_t seed;
    struct simulator_costs costs;
    const char *shape; /* as in policies/support/shape_text.h; null or empty: all CPUs are alike */
    const char *trace; /* file to write; null: no trace */
    bool trace_queues; /* the trace also has a record for each queued process: TRACE_QUEUED */
    /* Capacity for workloads that are added during the run (sim/control.h): the maximum number of
     * steps, and also of programs, of channels, of texts and of shared timers. 0: none can be
     * added. */
    uint32_t added_steps;
    /* Offsets (ns) of all times that the policy sees, and of the run time of each new task. With
     * them, a policy can be tested where numbers wrap. They change nothing else. */
    uint64_t policy_clock;
    uint64_t policy_run_time;
    const char
        *callbacks; /* file to write: the callbacks of a scheduler of sched_ext; null: none */
};

enum simulator_status {
    SIMULATOR_TIME, /* all events up to the given time have happened */
    SIMULATOR_DONE, /* the first process has ended */
    SIMULATOR_FAILED,
};

struct simulator_counts {
    uint64_t now;
    uint64_t decisions; /* number of times that a process was picked */
    uint64_t switches;  /* switches to another process */
    uint64_t idle_switches;
    uint64_t ticks; /* ticks of CPUs that ran a process */
    uint64_t forks;
    uint64_t wakeups;
    uint64_t migrations;
    uint64_t records;       /* trace records */
    uint64_t idle_time;     /* ns, sum over all CPUs */
    uint64_t process_bytes; /* memory reserved for each possible process */
    int64_t exit_status; /* exit status of the first process; -1: it has not ended, or was killed */
    uint32_t processes;  /* processes that have not been reaped */
};

struct simulator;

/* Creates a machine with a copy of the workload. Returns null on failure. */
struct simulator *simulator_create(const struct simulator_setup *setup,
                                   const struct simulator_workload *workload,
                                   struct simulator_error *error);
/* Runs until `until`. May be called repeatedly; after SIMULATOR_DONE and SIMULATOR_FAILED it
 * returns the same. */
enum simulator_status simulator_run(struct simulator *simulator, uint64_t until,
                                    struct simulator_error *error);
/* Returns the time (ns) of the next event, or UINT64_MAX if there is none or the run has ended.
 * simulator_run() until this time processes the event. */
uint64_t simulator_next(const struct simulator *simulator);
void simulator_count(const struct simulator *simulator, struct simulator_counts *counts);
/* Writes all records so far to the trace's file. */
bool simulator_flush(struct simulator *simulator, struct simulator_error *error);
/* Writes the rest of the trace, and its end. Afterwards the machine cannot run any more. */
bool simulator_finish(struct simulator *simulator, struct simulator_error *error);
/* Frees a machine. Null is allowed. */
void simulator_destroy(struct simulator *simulator);

/*
 * Checks that each process is in exactly one place, and that all counts agree. Returns false with
 * the error. For tests: it visits all processes.
 */
bool simulator_audit(const struct simulator *simulator, struct simulator_error *error);
/* Takes all processes from the policy, and fails if these are not exactly the queued processes.
 * Afterwards the machine cannot run any more. */
bool simulator_drain(struct simulator *simulator, struct simulator_error *error);

#endif
