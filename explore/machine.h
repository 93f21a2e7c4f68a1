/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_MACHINE_H
#define EXPLORE_MACHINE_H

/*
 * A machine that is only a policy's host: tasks, run queues and CPUs; operations on them are
 * executed one after another. Everything that affects the future lies in one `struct machine`, so
 * that it can be copied, compared and restored (image.c). docs/policy-interface.md defines what a
 * host may do, and when. Each operation here is one of these actions, in any allowed order.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/policy.h"

#define TASKS_MOST      8
#define QUEUES_MOST     4
#define GROUPS_EXPLORED 3 /* the root, one below it; and where groups change, one below either */
#define OPERATIONS_MOST 1024
#define TICK_NS         10000000ull
#define NEAR            (1ull << 41) /* ns: words this close to the time are times */
#define GAP             64           /* bytes after each state that no policy may access */

enum place { PLACE_FREE, PLACE_QUEUED, PLACE_RUNNING, PLACE_BLOCKED };

struct member {
    struct task task; /* must be first: policies hand out tasks */
    uint64_t place;   /* enum place */
    uint64_t known;   /* to the policy */
    /* Only for invariants (laws/), and 0 if the policy has none. */
    uint64_t rank;  /* of a queued task: the number of tasks queued before it */
    uint64_t ticks; /* of its turn so far; a preempted task resumes its turn */
    uint64_t set;   /* its CPU set: 1 more than the number of the one CPU; 0: all */
};

struct machine {
    uint64_t now;
    uint64_t current[QUEUES_MOST]; /* 1 more than the task's index in `tasks`; 0: idle */
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

/* Data of the host about a task or queue that a policy may read. */
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
    bool acting; /* CPUs act by themselves, as with a workload: acting_cpus.h */
    /* The words of the policy's source that are names of the host's data: "now,pid,nice". Other
     * attributes are not changed, and other data stay 0. "cpus": the CPU sets of tasks change,
     * too; "groups": users' settings of groups do. */
    const char *words;
};

/* An operation: its kind, its task or CPU, and its value. */
typedef uint16_t operation_t;

extern struct machine machine;
extern const uint64_t draw_values[];
extern const uint32_t draw_values_count;

/* Creates the machine, without tasks. Returns false, after a line on stderr, if the setup is
 * wrong. */
bool machine_begin(const struct setup *setup);
/* Returns true if tasks are equivalent to the policy, regardless of their numbers. */
bool machine_has_tasks_alike(void);
/* Lists the operations that are possible now. Returns their number. */
uint32_t machine_operations(operation_t *operations);
/* Executes the operation. A broken rule ends the program (sim/checked/watch.h). */
void machine_do(operation_t operation);
/* Translates the operation to tasks in other places: its task i is at places[i]. */
operation_t machine_translated(operation_t operation, const uint8_t *places);
/* Sets whether times are moved back after each operation, as the policy's invariants allow;
 * initially they are. */
void machine_set_relative(bool requested);
/* Sets the run time of new tasks, if the policy reads run times; initially 0. */
void machine_set_run_time(uint64_t run_time);
/* Makes all tasks compute: under a policy that shares, none may wait endlessly. The machine is
 * unusable afterwards. */
void machine_serve(void);
/* Takes out all queued tasks, as a switch to another policy does: each must come once. The
 * machine is unusable afterwards. */
void machine_drain(void);
/* Sets whether operations and results of hooks are printed on stdout. */
void machine_set_printing(bool prints_acts);
/* Returns the bytes of a task's state, a multiple of 8. */
uint32_t machine_task_bytes(void);
/* The state of a nonexistent task is closed to the policy (AddressSanitizer); these open all
 * states, and close them again. */
void machine_open(void);
void machine_close(void);

/* Sets the results of the next draws, as indexes of draw_values; later draws get the first
 * value. */
void draws_choose(const uint8_t *values, uint32_t count);
/* Returns the number of draws since then. */
uint32_t draws_made(void);

#endif
