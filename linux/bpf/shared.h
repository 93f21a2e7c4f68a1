/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_SHARED_H
#define LINUX_BPF_SHARED_H

/*
 * Types shared by the BPF programs and the loader. A file that includes this
 * has the fixed-width types already: <stdint.h>, or bpf_types.h in a BPF
 * program.
 */

#define HOST_TUNABLES 32 /* POLICY_TUNABLES_MAX */
#define HOST_NAME     16 /* TASK_COMM_LEN */
#define HOST_CPUS     1024

/* A thread's attributes, independent of the policy; a forked thread inherits them. All 0: none
 * was set. */
struct task_attributes {
    int32_t priority;
    uint32_t tickets;
    uint32_t weight;
    int32_t nice;
    uint64_t slice;
    uint64_t runtime;
    uint64_t deadline;
    uint64_t period;
    uint32_t set; /* 1; 0 in fresh memory */
    uint32_t group;
};

/* Settings for the start of a policy; the loader writes them before it attaches the policy. */
struct host_settings {
    uint32_t cpus;
    uint32_t users_groups; /* numbers of groups that users have named: a bit for each */
    uint64_t tick_ns;
    uint64_t seed;
    int64_t tunable[HOST_TUNABLES];
};

/* The trace's counters, shared by all writers of records. */
struct trace_state {
    uint64_t sequence; /* of the next record */
    uint64_t lost;     /* records that did not fit into the ring */
    uint64_t caught;   /* marks that observe_mark() missed */
    uint32_t on;       /* 0: nothing is recorded */
    uint32_t reserved;
};

/* The kind of trace; set by the loader before it loads the observer. */
struct observer_settings {
    uint32_t cpus;   /* of the machine, as in the trace's header */
    uint32_t visits; /* 1: visits to the scheduler are recorded. The kernel has tracepoints for
                      * them, and CPUs do not take turns */
};

/* The trace's data about a thread. */
struct observed {
    uint32_t pid;    /* its PID in the trace, even if exec() has changed it since */
    uint32_t state;  /* enum process_state; PROCESS_NEW: the trace does not know it yet */
    uint32_t waker;  /* of a wake-up that came before the thread had left its CPU */
    uint32_t fresh;  /* 1: has never run */
    uint32_t marked; /* 1: observe_mark() has recorded its mark */
    uint32_t later;  /* 1: its CPU set has changed, to be recorded when it may move */
    uint64_t name[HOST_NAME / 8]; /* the last recorded name */
};

#define TOLD_TEXT 252 /* bytes at most, as in docs/trace-format.md */

/* A record that the loader writes: the context of the program `tell`. */
struct reported_event {
    uint32_t kind; /* enum trace_kind: POLICY, TUNABLE, ATTRIBUTE, TASK_GROUP, LOST; 0: only this
                    * CPU's START */
    uint32_t process;
    uint32_t first;
    uint32_t length; /* of the text */
    uint64_t second;
    uint8_t text[TOLD_TEXT];
    uint32_t reserved;
};

/* A control group that a policy knows by a number. */
struct control_group {
    uint32_t number; /* 0: no control group has this number */
    uint32_t parent;
    uint32_t weight;
    uint32_t reserved;
    uint64_t quota; /* ns; 0: no limit */
    uint64_t period;
    char name[64]; /* the last part of its path */
};

/* Requests and notifications from a policy to the loader. */
enum host_request_kind {
    REQUEST_KILL = 1,   /* kill the thread `pid` */
    REQUEST_EXITED = 2, /* the kernel has ended the policy; exit_info says why */
    REQUEST_FULL = 3,   /* a control group gets no number: all are used */
};

struct host_request {
    uint32_t kind;
    int32_t pid;
};

/* Requests from the loader to a policy, by a program of type "syscall". */
struct attribute_change {
    int32_t pid;
    uint32_t kind; /* enum attribute_kind */
    int64_t value;
    int32_t result; /* 0; -ESRCH: no such thread; -ERANGE: the value is not allowed; -EBUSY: the
                     * number is a control group's */
    uint32_t reserved;
};

/* New values of a group of the policy; the loader has checked them. */
struct group_change {
    uint32_t group;
    uint32_t field; /* enum group_field */
    int64_t value;
};

enum host_task_state {
    HOST_TASK_RUNNABLE = 1,
    HOST_TASK_RUNNING = 2,
    HOST_TASK_BLOCKED = 3,
    HOST_TASK_ZOMBIE = 4,
};

/* A thread, as the iterator `describe_tasks` describes it. */

struct host_task {
    int32_t pid; /* of the thread */
    int32_t tgid;
    uint32_t state; /* enum host_task_state */
    uint32_t cpu;
    int32_t priority;
    uint32_t tickets;
    uint32_t weight;
    uint32_t managed; /* 1: the policy knows it, and the next four fields are valid */
    uint64_t slice;   /* ticks that it may run; UINT64_MAX: without limit */
    uint64_t drawn;   /* the tickets that it draws with */
    uint64_t level;
    uint64_t selections;
    char name[HOST_NAME];
};

/* How the kernel ended a policy; all 0 while it is active. */
struct host_exit {
    int32_t kind; /* the kernel's enum scx_exit_kind */
    int32_t reserved;
    int64_t exit_code;
    char reason[128];
    char message[1024];
};

#endif
