/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_TRACE_FORMAT_H
#define SCHEDLAB_ABI_TRACE_FORMAT_H

#include <stdint.h>

/*
 * The event trace, version 1; docs/trace-format.md explains it.
 *
 * A file is one trace_header and then trace_records, little-endian, in blocks
 * of one CPU each, in any order of blocks. `sequence` counts all records of the
 * trace from 0, without a gap. Sorted by it, the records are in the order of
 * the events, over all CPUs; a gap is a loss.
 */
#define TRACE_MAGIC   0x42414c4445484353ull /* "SCHEDLAB" in a little-endian file */
#define TRACE_VERSION 1

struct trace_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes; /* where the first record begins */
    uint32_t record_bytes;
    uint32_t cpus;
    uint64_t tick_ns;
    uint64_t cycles_per_second; /* of the counter in SCHEDULER_ENTER and _EXIT */
    uint64_t seed;
    uint8_t reserved[16]; /* 0 */
};

struct trace_record {
    uint64_t time; /* nanoseconds since boot; never decreases on one CPU */
    uint32_t sequence;
    uint32_t process; /* PID; 0: the CPU's idle loop, or none */
    uint16_t kind;    /* enum trace_kind */
    uint16_t cpu;
    uint32_t first;
    uint64_t second;
};

enum trace_kind {
    TRACE_START = 1,      /* first record of a CPU. second: cycle counter */
    TRACE_END = 2,        /* last record of a CPU. second: records of this CPU, this one included */
    TRACE_LOST = 3,       /* second: records that this CPU could not keep. first: enum trace_loss */
    TRACE_FORK = 4,       /* process: parent. first: child's PID. second: the process that the
                           * child is a thread of; 0: none but itself */
    TRACE_EXEC = 5,       /* name: 8 bytes in second, 4 in first, the rest in TEXT */
    TRACE_TEXT = 6,       /* 12 more bytes of text for the record before it on this CPU */
    TRACE_EXIT = 7,       /* first: status */
    TRACE_WAKEUP = 8,     /* process: woken. first: waker's PID, 0 an interrupt. second: its CPU */
    TRACE_BLOCK = 9,      /* first: enum block_reason */
    TRACE_SWITCH = 10,    /* process: next. first: previous. second: previous's process_state */
    TRACE_YIELD = 11,     /* the process yielded its CPU voluntarily */
    TRACE_PREEMPT = 12,   /* first: enum preempt_reason */
    TRACE_MIGRATE = 13,   /* first: from CPU. second: to CPU */
    TRACE_POLICY = 14,    /* "name" or "name:preset": text as in EXEC. process: what now
                           * determines shares, enum attribute_kind: tickets, weight or nice; 0:
                           * nothing */
    TRACE_TUNABLE = 15,   /* second: value. Its name follows in TEXT. process: as in POLICY */
    TRACE_ATTRIBUTE = 16, /* first: enum attribute_kind. second: value */
    TRACE_SCHEDULER_ENTER = 17, /* process: leaving. second: cycle counter */
    TRACE_SCHEDULER_EXIT = 18,  /* process: entering. second: cycle counter */
    TRACE_DECISION = 19, /* process: picked. first: how many waited. second: policy's annotation */
    TRACE_MARK = 20,     /* first: enum mark_kind. second: value */
    TRACE_FOUND = 21,    /* process: older than the trace. first: enum process_state. second: as
                          * of FORK. Its name follows in TEXT */
    TRACE_QUEUED = 22,   /* process: queued. first: the CPU whose run queue it now waits in; 0:
                          * the shared queue of all CPUs. second: its task's level. Only in
                          * traces where it was requested */
    TRACE_TASK_GROUP = 23, /* process: number of a group of tasks. first: enum group_field. second:
                              value */
    TRACE_SAID = 24,     /* an annotation of the policy. process: its subject; 0: none. second, and
                          * first, signed: numbers for its {}. Its words follow in TEXT */
    TRACE_AFFINITY = 25, /* process: may now run on these CPUs, and its later children too.
                          * first: which 64 of all CPUs. second: a bit for each of them. All
                          * words of the machine follow each other */
    TRACE_DISPATCH = 26, /* process: now in this dispatch queue of sched_ext. first: enum
                          * dispatch_callback. second: the queue's ID as in Linux; a local queue:
                          * SCX_DSQ_LOCAL_ON and its CPU; SCX_DSQ_INVALID: in none, because the
                          * scheduler keeps it elsewhere. Only in traces of sched_ext schedulers */
    TRACE_KICK = 27, /* process: runs on the kicked CPU; 0: none. first: enum dispatch_callback that
                      * kicked. second: the CPU, and in the upper half enum kick_flag. Only in
                      * traces of sched_ext schedulers */
};

enum trace_loss {
    LOSS_OF_RECORDS = 0,
    LOSS_MENDED = 1,     /* the writer of the trace has inserted an event that must have happened */
    LOSS_OF_WAKEUPS = 2, /* each WAKEUP was inserted before its process's next run */
    LOSS_UNSEEN = 3,     /* the process's activity is now unknown; process 0: the CPU's */
    LOSS_SEEN = 4,       /* the CPU is known to idle again */
};

/* The callback of a sched_ext scheduler that put a process into a queue, or kicked a CPU. */
enum dispatch_callback {
    DISPATCH_BY_SELECT_CPU = 1,
    DISPATCH_BY_ENQUEUE = 2,
    DISPATCH_BY_DISPATCH = 3,
    DISPATCH_BY_OTHER = 4,  /* another callback, or a timer */
    DISPATCH_BY_KERNEL = 5, /* none */
};

/* How a sched_ext scheduler kicks a CPU: SCX_KICK_IDLE, SCX_KICK_PREEMPT and SCX_KICK_WAIT. */
enum kick_flag {
    KICK_IDLE = 1, /* no effect unless the CPU is idle */
    KICK_PREEMPT = 2,
    KICK_WAIT = 4,
};

enum preempt_reason {
    PREEMPT_SLICE = 1,  /* the policy requested it at a tick */
    PREEMPT_WAKEUP = 2, /* for a process that woke or was forked */
    PREEMPT_POLICY = 3, /* the policy or an attribute changed */
};

/*
 * How a program on Linux makes a MARK: prctl(TRACE_MARK_PRCTL, enum mark_kind, value, 0, 0). The
 * kernel itself does not know this operation and fails it with EINVAL, traced or not.
 */
#define TRACE_MARK_PRCTL 0x53434c42

enum attribute_kind {
    ATTRIBUTE_PRIORITY = 1,
    ATTRIBUTE_TICKETS = 2,
    ATTRIBUTE_WEIGHT = 3,
    ATTRIBUTE_NICE = 4,
    ATTRIBUTE_SLICE = 5, /* nanoseconds, as are the next three */
    ATTRIBUTE_RUNTIME = 6,
    ATTRIBUTE_DEADLINE = 7,
    ATTRIBUTE_PERIOD = 8,
    ATTRIBUTE_TASKGROUP = 9, /* the number of a group of tasks */
};

/* The fields of a group of tasks, besides its number. */
enum group_field {
    GROUP_PARENT = 1, /* the number of another group; 0: the root */
    GROUP_WEIGHT = 2,
    GROUP_QUOTA = 3, /* nanoseconds in each period; 0: no limit */
    GROUP_PERIOD = 4,
};

_Static_assert(sizeof(struct trace_header) == 64, "the header's layout is fixed");
_Static_assert(sizeof(struct trace_record) == 32, "the record's layout is fixed");

#endif
