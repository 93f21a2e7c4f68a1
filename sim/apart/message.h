/* SPDX-License-Identifier: MIT */
#ifndef SIM_SEPARATE_MESSAGE_H
#define SIM_SEPARATE_MESSAGE_H

#include <stdint.h>

#include "policies/policy.h"

/*
 * The messages between the simulator and a policy in a separate machine: one call of a hook, and
 * its answer. Both have this structure, with the same layout on every target: numbers of 64 bits
 * and bytes. A task is represented by its slot plus 1; 0 means no task.
 *
 * The policy's side sees only the contents of calls. The simulator trusts nothing in an answer:
 * policy.c looks up each task, and the mechanism checks each answer against its rules.
 */

#define SEPARATE_TASKS 1024
#define SEPARATE_CPUS  64

enum separate_hook {
    SEPARATE_DESCRIBE, /* the policy's description, and the hooks that the policy has */
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

/* The host's numeric fields of a task, and its links to other tasks. */
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
    int64_t is_bound; /* the task may run only on the CPUs of `may_run` */
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

/* The answer to SEPARATE_DESCRIBE. */
struct separate_description {
    int64_t hooks; /* a bit for each enum separate_hook */
    int64_t level_order;
    int64_t remark_kind;
    char name[32];
    int64_t tunable_count;
    struct separate_tunable tunables[POLICY_TUNABLES_MAX];
    /* Addresses of the queues and tasks in the machine's memory, as policies see them, and the size
     * of each element. */
    int64_t queues_at, queue_bytes, tasks_at, task_bytes;
};

/* The message of the policy's side. */
struct separate_answer {
    int64_t result; /* a verdict, a CPU, a slice, a boolean or a task */
    int64_t follows_waits;
    int64_t orders_waiters;
    struct separate_queue queue; /* the queue of the call, with the policy's requests */
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
    } changed[SEPARATE_TASKS];
};

/* The scheduler's fields. They are transferred only after a change. */
struct separate_scheduler {
    int64_t cpus, queues, tick_ns, overhead_ns, seed, ending, groups;
    int64_t tunables[POLICY_TUNABLES_MAX];
    struct separate_group group[GROUPS_MAX];
};

/* The message of the simulator. Contains the queues and tasks that have changed since the last
 * call. */
struct separate_call {
    int64_t hook;
    int64_t queue; /* the queue's number plus 1; 0: none */
    int64_t task;
    int64_t other; /* a parent, or the running task */
    int64_t value; /* a reason, or a CPU */
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
