/* SPDX-License-Identifier: MIT */
#ifndef SIM_SEPARATE_MESSAGE_H
#define SIM_SEPARATE_MESSAGE_H

#include <stdint.h>

#include "policies/policy.h"

/*
 * The messages between the simulator and a policy in a separate machine (sim/apart/apart.h): the
 * call of a hook, and its answer.
 *
 * Both sides compile this structure. It consists of 64-bit numbers and bytes only, so that its
 * layout is the same on every processor. A task is represented by its slot plus 1; 0 means no task.
 *
 * The policy's side knows only what calls contain. The simulator trusts nothing in an answer:
 * policy.c looks up each task, and the engine checks each answer against the rules of
 * policies/policy.h.
 */

#define SEPARATE_TASKS 1024
#define SEPARATE_CPUS  64

enum separate_hook {
    SEPARATE_DESCRIBE, /* not a hook: asks for the policy's description */
    SEPARATE_SCHEDULER_INIT,
    SEPARATE_SHARED_QUEUE,
    SEPARATE_SHARES_BY,
    SEPARATE_QUEUE_INIT,
    SEPARATE_TASK_INIT,
    SEPARATE_TASK_EXIT,
    SEPARATE_ENQUEUE,
    SEPARATE_DEQUEUE,
    SEPARATE_PICK,
    SEPARATE_TICK,
    SEPARATE_TIME_SLICE,
    SEPARATE_STOPPED,
    SEPARATE_TURN_OVER,
    SEPARATE_ALARM,
    SEPARATE_CHANGED,
    SEPARATE_LEAVE,
    SEPARATE_WAITERS_CHANGED,
    SEPARATE_OVERTAKES,
    SEPARATE_PREEMPTS,
    SEPARATE_PLACE,
    SEPARATE_PUSH,
    SEPARATE_BALANCE,
    SEPARATE_STEAL,
};

/* Fields of a task that the simulator sets and the policy reads: numbers, then links to other
 * tasks. */
#define SEPARATE_TASK_NUMBERS(FIELD)                                                               \
    FIELD(pid)                                                                                     \
    FIELD(slot)                                                                                    \
    FIELD(priority)                                                                                \
    FIELD(tickets)                                                                                 \
    FIELD(weight)                                                                                  \
    FIELD(nice)                                                                                    \
    FIELD(cpu)                                                                                     \
    FIELD(group)                                                                                   \
    FIELD(run_time)                                                                                \
    FIELD(counted)                                                                                 \
    FIELD(queued_since)                                                                            \
    FIELD(picked_since)                                                                            \
    FIELD(selections)                                                                              \
    FIELD(slice)                                                                                   \
    FIELD(runtime)                                                                                 \
    FIELD(deadline)                                                                                \
    FIELD(period)                                                                                  \
    FIELD(ceiling)                                                                                 \
    FIELD(waker_cpu)                                                                               \
    FIELD(waker)
#define SEPARATE_TASK_LINKS(FIELD)                                                                 \
    FIELD(waits_for)                                                                               \
    FIELD(first_waiter)                                                                            \
    FIELD(next_waiter)                                                                             \
    FIELD(previous_waiter)
#define SEPARATE_FIELD(name) int64_t name;

struct separate_task {
    SEPARATE_TASK_NUMBERS(SEPARATE_FIELD)
    SEPARATE_TASK_LINKS(SEPARATE_FIELD)
    int64_t is_bound; /* 1 if the task may run only on the CPUs in `may_run`, a set of bits */
    uint64_t may_run;
};

#define SEPARATE_QUEUE_HOST(FIELD)                                                                 \
    FIELD(now)                                                                                     \
    FIELD(queued)                                                                                  \
    FIELD(running)                                                                                 \
    FIELD(bound)
#define SEPARATE_QUEUE_POLICY(FIELD)                                                               \
    FIELD(remark)                                                                                  \
    FIELD(turn_end)                                                                                \
    FIELD(alarm)                                                                                   \
    FIELD(held)

struct separate_queue {
    int64_t number; /* and 1 */
    SEPARATE_QUEUE_HOST(SEPARATE_FIELD)
    SEPARATE_QUEUE_POLICY(SEPARATE_FIELD)
    int64_t current;
};

struct separate_group {
    int64_t parent, weight, quota, period;
};

struct separate_tunable {
    char name[32];
    int64_t minimum, standard, maximum;
};

/* The answer to SEPARATE_DESCRIBE: what kind of policy the module contains. */
struct separate_description {
    int64_t hooks; /* a bit for each enum separate_hook that the policy defines */
    int64_t level_order;
    int64_t remark_kind;
    char name[32];
    int64_t tunable_count;
    struct separate_tunable tunables[POLICY_TUNABLES_MAX];
    /* Addresses of the first queue and the first task in the module's memory, and the size of
     * each element of these arrays, in bytes. */
    int64_t queues_at, queue_bytes, tasks_at, task_bytes;
};

/* The answer of the policy's side to a call: the hook's result, and what the hook has changed. */
struct separate_answer {
    int64_t result; /* depending on the hook: a verdict, a CPU, a time slice, a boolean or a task */
    int64_t follows_waits;
    int64_t orders_waiters;
    struct separate_queue queue; /* the queue that the hook was called with, including the
                                  * policy's fields */
    int64_t told;
    int64_t said_pid;
    uint64_t said[SAID_BYTES / 8];
    int64_t said_value;
    int64_t said_other;
    char trouble[256]; /* which rule the hook has broken; "": none */
    /* Tasks whose fields `level` or `lent` the hook has changed. */
    int64_t changed_count;
    struct {
        int64_t task, level, lent;
    } changed[SEPARATE_TASKS];
};

/* The fields of struct scheduler. A call contains them only if they have changed. */
struct separate_scheduler {
    int64_t cpus, queues, tick_ns, overhead_ns, seed, ending, groups;
    int64_t tunables[POLICY_TUNABLES_MAX];
    struct separate_group group[GROUPS_MAX];
};

/* A call of a hook. It contains the queues and tasks that have changed since the last call. */
struct separate_call {
    int64_t hook;
    int64_t queue; /* number of the hook's run queue plus 1; 0: the hook has no queue */
    int64_t task;
    int64_t other; /* the hook's second task: a parent, or the running task */
    int64_t value; /* the hook's integer argument: a reason, or a CPU */
    int64_t flag;
    int64_t scheduler_changed, queue_count, task_count;
    struct separate_scheduler scheduler;
    struct separate_queue queues[SEPARATE_CPUS];
    struct separate_task tasks[SEPARATE_TASKS];
};

struct separate_message {
    struct separate_description description;
    struct separate_answer answer;
    struct separate_call call;
};

#endif
