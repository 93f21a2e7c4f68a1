/* SPDX-License-Identifier: MIT */
#ifndef SIM_SIMULATOR_H
#define SIM_SIMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/workload_steps.h"

/*
 * A machine of several CPUs without a kernel: a discrete-event simulation that runs
 * the policies of policies/ under a workload and writes the event trace of
 * docs/trace-format.md. docs/simulator.md says how it behaves.
 *
 * All state is in `struct simulator`; there are no variables besides it, and several
 * simulators may be used at once, each by one thread at a time. The same setup and
 * workload give the same trace, byte for byte. Times are nanoseconds.
 *
 * A function that fails returns false and says why in `error`, which is never null.
 */

#define SIMULATOR_PROCESSES_MAX (1u << 24)
#define SIMULATOR_CHANNELS_MAX  (1u << 20)
#define SIMULATOR_STEPS_MAX     (1u << 30)
#define SIMULATOR_ADDED_MAX     (1u << 24) /* steps */

struct simulator_error {
    char text[280]; /* the cause and, where there is one, the cure; no full stop, no new line */
};

/* ---- what processes do: the steps are those of abi/workload_steps.h ---- */

/* A list of steps; the last one is STEP_EXIT. A process plays one program. */
struct simulator_program {
    const char *name;
    const struct workload_step *steps;
    uint32_t count;
};

/* The first process plays program 0; when it has ended, so has the run. */
struct simulator_workload {
    const struct simulator_program *programs;
    uint32_t program_count;
    const char *const *texts;
    uint32_t text_count;
    const uint64_t *channels; /* what lies in each at first */
    uint32_t channel_count;
};

/* ---- the machine ---- */

/* What a cost is instead under a policy, or one of its presets. */
struct simulator_policy_cost {
    char policy[40]; /* "name" or "name:preset" */
    uint32_t cost;   /* its place in the list of docs/simulator.md */
    uint64_t value;
};

#define SIMULATOR_POLICY_COSTS_MAX 128

/* What things take; see docs/simulator.md. */
struct simulator_costs {
    uint64_t boot;      /* until the workload begins, from whose begin its times count */
    uint64_t stagger;   /* from a CPU's tick to that of the next one; half a tick in all, at most */
    uint64_t scheduler; /* to come to a decision */
    uint64_t crowd;     /* of a decision, for each 100 processes that wait, besides that */
    uint64_t context_switch; /* to load another process, or idle, besides that */
    uint64_t tick;           /* of each tick */
    uint64_t wakeup;         /* of each process that a timer wakes */
    uint64_t interrupt;      /* until a CPU hears that another one wants it to pick again */
    uint64_t migration;      /* that a process computes longer after it was moved to another CPU */
    uint64_t call;           /* of each act except those below, and except computing */
    uint64_t sleep;          /* until the process sleeps */
    uint64_t pipe;           /* to put something into a channel, or take it out */
    uint64_t fork;           /* until the child is there */
    uint64_t fork_look;      /* of that, until the kernel looks for interrupts */
    uint64_t fork_new;       /* besides that, if there were never so many processes before */
    uint64_t fork_return;    /* until its parent goes on */
    uint64_t first_run;      /* until a new process does its first step */
    uint64_t exit;
    uint64_t reap; /* of a child that has ended, by its parent */
    /* Not a cost, but an order: what ends at the time of a tick goes before it, and the tick does
     * not count for a process that has just been picked. */
    uint64_t bursts_first;
    uint32_t policy_count;
    struct simulator_policy_cost policies[SIMULATOR_POLICY_COSTS_MAX];
};

/* Only computing takes time. */
extern const struct simulator_costs simulator_costs_none;
/* Returns costs as of our kernel on Spike: sim/costs/kernel.json. */
struct simulator_costs simulator_costs_kernel(void);

/* Reads "kernel", "none", "textbook", which is none with `bursts_first`, or one of them and then
 * changes, for all policies or for one; "+=" adds to what it is under each:
 * "kernel,fork=20000,scheduler.lottery=600,exit+=9000". */
bool simulator_read_costs(struct simulator_costs *costs, const char *text,
                          struct simulator_error *error);

struct simulator_setup {
    const char *policy;   /* "name", "name:preset" or a number */
    const char *tunables; /* "name=value,name=value"; null or empty: none */
    uint32_t cpus;        /* 1 to 1,024 */
    uint32_t processes;   /* that may live at once, at most; 0: 4096 */
    uint64_t tick_ns;
    uint64_t seed;
    struct simulator_costs costs;
    const char *shape; /* as policies/support/shape_text.h; null or empty: all CPUs are alike */
    const char *trace; /* file to be written; null: no trace */
    bool trace_queues; /* it says, too, each time that a process was queued: TRACE_QUEUED */
    /* Of workloads that are added while it runs (sim/control.h), at most: so many steps, and so
     * many programs, channels, texts and shared timers. 0: none can be added. */
    uint32_t added_steps;
    /* Added to all times that the policy sees, and to the run time of each new task: so a policy
     * can be tried where numbers wrap. Nothing else changes with them. */
    uint64_t policy_clock;
    uint64_t policy_run_time;
};

enum simulator_status {
    SIMULATOR_TIME, /* all that happens until the given time has happened */
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
/* Goes on to `until`. May be called again and again; after SIMULATOR_DONE and SIMULATOR_FAILED it
 * returns the same. */
enum simulator_status simulator_run(struct simulator *simulator, uint64_t until,
                                    struct simulator_error *error);
/* When something happens next: it does in simulator_run() until then. UINT64_MAX: never, or the run
 * is over. */
uint64_t simulator_next(const struct simulator *simulator);
void simulator_count(const struct simulator *simulator, struct simulator_counts *counts);
/* What was traced so far is in the trace's file. */
bool simulator_flush(struct simulator *simulator, struct simulator_error *error);
/* Writes what is left of the trace, and its end. Nothing can be run after it. */
bool simulator_finish(struct simulator *simulator, struct simulator_error *error);
/* Null is allowed. */
void simulator_destroy(struct simulator *simulator);

/*
 * Checks that each process is in exactly one place, and that all counts agree. Returns false,
 * with what is wrong in the error. For tests: it looks at all processes.
 */
bool simulator_audit(const struct simulator *simulator, struct simulator_error *error);
/* Takes all queued processes out of the policy's hands, and fails unless they are those that are
 * queued. Nothing can be run after it. */
bool simulator_drain(struct simulator *simulator, struct simulator_error *error);

#endif
