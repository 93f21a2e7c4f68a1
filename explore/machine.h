/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_MACHINE_H
#define EXPLORE_MACHINE_H

/*
 * A machine without a kernel or a simulation: tasks, run queues and CPUs, and operations on them
 * that are performed one after another.
 *
 * Everything that affects the future is in one `struct machine`, so that a state can be copied,
 * compared and restored (image.c). docs/policy-interface.md defines what a host of a policy may do,
 * and when. Each operation here is one of these actions, in any order that is allowed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/policy.h"

#define TASKS_MOST  8
#define QUEUES_MOST 4
/* The root and a group below it; if groups change, also a group below that one. */
#define GROUPS_EXPLORED 3
#define OPERATIONS_MOST 1024
#define TICK_NS         10000000ull
/* A word of the state that is this close (ns) to the time is a time. */
#define NEAR (1ull << 41)
#define GAP  64 /* bytes after each state that no policy may access */

enum place { PLACE_FREE, PLACE_QUEUED, PLACE_RUNNING, PLACE_BLOCKED };

struct member {
    struct task task; /* must be first, because policies handle pointers to it */
    uint64_t place;   /* enum place */
    uint64_t known;   /* to the policy */
    /* These two are only for the policy's promises (struct law); 0 if it makes none. */
    uint64_t rank;  /* of a queued task: number of tasks that were queued before it */
    uint64_t ticks; /* ticks of the present time slice so far; a preempted task continues its
                     * slice */
    uint64_t set;   /* the one CPU that it may use, plus 1; 0: all CPUs */
};

struct machine {
    uint64_t now;
    uint64_t current[QUEUES_MOST]; /* by CPU: index of the running task in `tasks`, plus 1; 0:
                                    * idle */
    uint64_t turn_end[QUEUES_MOST];
    struct run_queue queues[QUEUES_MOST];
    struct member tasks[TASKS_MOST];
    struct scheduler scheduler;
    struct {
        uint64_t words[POLICY_TASK_BYTES / 8];
        uint64_t gap[GAP / 8];
    } task_state[TASKS_MOST];
    struct {
        uint64_t words[POLICY_QUEUE_BYTES / 8];
        uint64_t gap[GAP / 8];
    } queue_state[QUEUES_MOST];
    struct {
        uint64_t words[POLICY_SCHEDULER_BYTES / 8];
        uint64_t gap[GAP / 8];
    } scheduler_state;
};

/* Data of the host, about a task or a queue, that a policy may read. */
enum named {
    NAMED_NOW,
    NAMED_RUN_TIME,
    NAMED_COUNTED,
    NAMED_QUEUED_SINCE,
    NAMED_PICKED_SINCE,
    NAMED_SELECTIONS,
    NAMED_PID,
    NAMED_SLOT,
    NAMED_COUNT,
};

struct setup {
    const char *policy;   /* "name" or "name:preset" */
    const char *tunables; /* "name=value,name=value"; null: none */
    uint32_t tasks;
    uint32_t queues;
    bool acting; /* CPUs act by themselves, as with a workload: see acting_cpus.h */
    /* Names of the host's data that the policy reads, such as "now,pid,nice". Attributes that it
     * does not read never change, and other such data stay 0. "cpus": the CPU sets of tasks
     * change, too. "groups": the settings of groups change. */
    const char *words;
};

/* An operation in 16 bits: its kind, its task or CPU, and its value. */
typedef uint16_t operation_t;

extern struct machine machine;
extern const uint64_t draw_values[];
extern const uint32_t draw_values_count;

/* Creates the machine, without tasks. If the setup is wrong, prints a line on stderr and returns
 * false. */
bool machine_begin(const struct setup *setup);
/* Returns true if the policy treats tasks alike, independent of their numbers. */
bool machine_has_tasks_alike(void);
/* Lists the operations that are possible now, and returns how many there are. */
uint32_t machine_operations(operation_t *operations);
/* Performs the operation. If a rule is broken, the program ends (sim/checked/watch.h). */
void machine_do(operation_t operation);
/* Returns the same operation for a machine where tasks have other places: task i is at
 * places[i]. */
operation_t machine_translated(operation_t operation, const uint8_t *places);
/* Sets whether times are moved back after each operation, if the policy's promises allow it.
 * They are unless this was called. */
void machine_set_relative(bool requested);
/* Sets the initial run time of new tasks, if the policy reads run times; 0 unless this was
 * called. */
void machine_set_run_time(uint64_t run_time);
/* Makes all tasks compute. If the policy shares the CPU, checks that no task waits endlessly.
 * Afterwards the machine is unusable. */
void machine_serve(void);
/* Dequeues all tasks, as a switch to another policy does, and checks that each comes exactly
 * once. Afterwards the machine is unusable. */
void machine_drain(void);
/* Sets whether operations, and results of hooks, are printed on stdout. */
void machine_set_printing(bool prints_acts);
/* Returns the bytes of a task's state in the policy, a multiple of 8. */
uint32_t machine_task_bytes(void);
/* The policy may not access the state of a task that does not exist (AddressSanitizer checks
 * this). These functions allow access to all states, and forbid it again. */
void machine_open(void);
void machine_close(void);

/* Sets the results of the next draws, as indices in draw_values. Draws after these get the first
 * value. */
void draws_choose(const uint8_t *values, uint32_t count);
/* Returns how many draws were made since the last draws_choose(). */
uint32_t draws_made(void);

#endif
