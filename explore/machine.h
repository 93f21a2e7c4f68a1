/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_MACHINE_H
#define EXPLORE_MACHINE_H

/*
 * A machine that is nothing but a policy's host: tasks, run queues and CPUs, to which one operation
 * after another is done. All that the future depends on lies in one `struct machine`, so that it
 * can be copied, compared and taken back (image.c). Pages of docs/policy-interface.md say what a
 * host may do, and when; each operation here is one of these things, in any order that they allow.
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
#define NEAR            (1ull << 41) /* ns: words that lie so near to the time are times */
#define GAP             64           /* bytes behind each state that no policy may touch */

enum place { PLACE_FREE, PLACE_QUEUED, PLACE_RUNNING, PLACE_BLOCKED };

struct member {
    struct task task; /* first: policies hand out tasks */
    uint64_t place;   /* enum place */
    uint64_t known;   /* to the policy */
    /* For laws alone (laws/), and 0 if the policy has none. */
    uint64_t rank;  /* of a queued task: so many of its queue have come before it */
    uint64_t ticks; /* of its turn so far; a preempted one goes on with its turn */
    uint64_t set;   /* where it may run: 1 more than the number of the one CPU; 0: on all */
};

struct machine {
    uint64_t now;
    uint64_t current[QUEUES_MOST]; /* 1 more than the task's place in `tasks`; 0: idle */
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

/* What the host has of a task or queue, and a policy may read. */
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
    bool acting; /* CPUs act by themselves, as where a workload runs: acting.h */
    /* The words of the policy's source, of those that are names of what the host has:
     * "now,pid,nice". Attributes that are not among them are not changed, and other things stay 0.
     * "cpus": the CPUs on which tasks may run change, too; "groups": what users set of groups does.
     */
    const char *words;
};

/* An operation: what is done, to which task or CPU, and with what. */
typedef uint16_t operation_t;

extern struct machine machine;
extern const uint64_t draw_values[];
extern const uint32_t draw_values_count;

/* Makes the machine, without tasks. Returns false, after a line on stderr, if the setup is wrong.
 */
bool machine_begin(const struct setup *setup);
/* Are tasks alike to the policy, whatever their numbers? */
bool machine_has_tasks_alike(void);
/* Lists what may be done now; gives their number. */
uint32_t machine_operations(operation_t *operations);
/* Does it. A rule that is broken ends the program (sim/checked/watch.h). */
void machine_do(operation_t operation);
/* The operation on tasks that are elsewhere: task i of it at places[i]. */
operation_t machine_translated(operation_t operation, const uint8_t *places);
/* Whether times are moved back after each operation, as the law allows: at first they are. */
void machine_set_relative(bool wanted);
/* The run time of new tasks, if the policy reads run times: at first 0. */
void machine_set_run_time(uint64_t run_time);
/* From here on all tasks compute: none may wait without end under a policy that shares. The machine
 * is of no use afterwards. */
void machine_serve(void);
/* Takes all queued tasks out of the policy's hands, as a switch to another one does: each must come
 * once. The machine is of no use afterwards. */
void machine_drain(void);
/* Whether what is done, and what hooks return, is told on stdout. */
void machine_tell(bool told);
/* Bytes of a task's state, a multiple of 8. */
uint32_t machine_task_bytes(void);
/* A state of a task that does not exist is closed to the policy (AddressSanitizer); these open them
 * all, and close them again. */
void machine_open(void);
void machine_close(void);

/* The numbers that are drawn next, as places in draw_values; further ones are the first value. */
void draws_choose(const uint8_t *values, uint32_t count);
/* Returns how many were drawn since then. */
uint32_t draws_made(void);

#endif
