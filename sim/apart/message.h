/* SPDX-License-Identifier: MIT */
#ifndef SIM_APART_MESSAGE_H
#define SIM_APART_MESSAGE_H

#include <stdint.h>

#include "policies/policy.h"

/*
 * The messages between the simulator and a policy in a separate machine: one call of a hook, and
 * its answer. Both have this structure, with the same layout on every target: numbers of 64 bits
 * and bytes. A task is given as its slot plus 1; 0 is none.
 *
 * The policy's side sees only the call's contents. The simulator trusts nothing in an answer:
 * policy.c looks up each task, and the mechanism checks each answer against its rules.
 */

#define APART_TASKS 1024
#define APART_CPUS  64

enum apart_hook {
    APART_DESCRIBE, /* the policy's description, and the hooks that it has */
    APART_SCHEDULER_INIT,
    APART_SHARED_QUEUE,
    APART_SHARES_BY,
    APART_QUEUE_INIT,
    APART_TASK_INIT,
    APART_TASK_EXIT,
    APART_ENQUEUE,
    APART_DEQUEUE,
    APART_PICK,
    APART_TICK,
    APART_TIME_SLICE,
    APART_STOPPED,
    APART_TURN_OVER,
    APART_ALARM,
    APART_CHANGED,
    APART_LEAVE,
    APART_WAITERS_CHANGED,
    APART_OVERTAKES,
    APART_PREEMPTS,
    APART_PLACE,
    APART_PUSH,
    APART_BALANCE,
    APART_STEAL,
};

/* The host's numeric fields of a task, and its links to other tasks. */
#define APART_TASK_NUMBERS(FIELD)                                                                  \
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
#define APART_TASK_LINKS(FIELD)                                                                    \
    FIELD(waits_for)                                                                               \
    FIELD(first_waiter)                                                                            \
    FIELD(next_waiter)                                                                             \
    FIELD(previous_waiter)
#define APART_FIELD(name) int64_t name;

struct apart_task {
    APART_TASK_NUMBERS(APART_FIELD)
    APART_TASK_LINKS(APART_FIELD)
    int64_t is_bound; /* it may run only on the CPUs of `may_run` */
    uint64_t may_run;
};

#define APART_QUEUE_HOST(FIELD)                                                                    \
    FIELD(now)                                                                                     \
    FIELD(queued)                                                                                  \
    FIELD(running)                                                                                 \
    FIELD(bound)
#define APART_QUEUE_POLICY(FIELD)                                                                  \
    FIELD(remark)                                                                                  \
    FIELD(turn_end)                                                                                \
    FIELD(alarm)                                                                                   \
    FIELD(held)

struct apart_queue {
    int64_t number; /* and 1 */
    APART_QUEUE_HOST(APART_FIELD)
    APART_QUEUE_POLICY(APART_FIELD)
    int64_t current;
};

struct apart_group {
    int64_t parent, weight, quota, period;
};

struct apart_tunable {
    char name[32];
    int64_t minimum, standard, maximum;
};

/* The answer to APART_DESCRIBE. */
struct apart_description {
    int64_t hooks; /* a bit for each enum apart_hook */
    int64_t level_order;
    int64_t remark_kind;
    char name[32];
    int64_t tunable_count;
    struct apart_tunable tunables[POLICY_TUNABLES_MAX];
    /* Where the policies' view of queues and tasks lies in the machine's memory, and the size of
     * each element. */
    int64_t queues_at, queue_bytes, tasks_at, task_bytes;
};

/* The message of the policy's side. */
struct apart_answer {
    int64_t result; /* a verdict, a CPU, a slice, a boolean; a task */
    int64_t follows_waits;
    int64_t orders_waiters;
    struct apart_queue queue; /* the queue of the call, with the policy's requests */
    int64_t told;
    int64_t said_pid;
    uint64_t said[SAID_BYTES / 8];
    int64_t said_value;
    int64_t said_other;
    char trouble[256]; /* the rule that the hook has broken; "": none */
    /* Tasks whose policy fields have changed. */
    int64_t changed_count;
    struct {
        int64_t task, level, lent;
    } changed[APART_TASKS];
};

/* Transferred only after a change. */
struct apart_scheduler {
    int64_t cpus, queues, tick_ns, overhead_ns, seed, ending, groups;
    int64_t tunables[POLICY_TUNABLES_MAX];
    struct apart_group group[GROUPS_MAX];
};

/* The message of the simulator. Contains the queues and tasks that have changed since the last
 * call. */
struct apart_call {
    int64_t hook;
    int64_t queue; /* its number plus 1; 0: none */
    int64_t task;
    int64_t other; /* a parent; the running task */
    int64_t value; /* a reason; a CPU */
    int64_t flag;
    int64_t scheduler_changed, queue_count, task_count;
    struct apart_scheduler scheduler;
    struct apart_queue queues[APART_CPUS];
    struct apart_task tasks[APART_TASKS];
};

struct apart_message {
    struct apart_description description;
    struct apart_answer answer;
    struct apart_call call;
};

#endif
