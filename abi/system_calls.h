/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_SYSTEM_CALLS_H
#define SCHEDLAB_ABI_SYSTEM_CALLS_H

/*
 * System-call numbers, in register a7; arguments in a0 to a5; the result in a0.
 *
 * Numbers 1 to 21 are those of xv6 for RISC-V, with its arguments and its one failure value, -1.
 * Numbers 22 to 63 are for courses' additions (abi/course_calls.h). schedlab's calls begin at 64.
 * After a failure, last_error() gives the reason (abi/errors.h).
 *
 * docs/system-calls.md describes each call with its errors.
 */
enum system_call_number {
    SYSTEM_CALL_FORK = 1,
    SYSTEM_CALL_EXIT = 2,
    SYSTEM_CALL_WAIT = 3,
    SYSTEM_CALL_PIPE = 4,
    SYSTEM_CALL_READ = 5,
    SYSTEM_CALL_KILL = 6,
    SYSTEM_CALL_EXEC = 7,
    SYSTEM_CALL_FSTAT = 8,
    SYSTEM_CALL_CHDIR = 9,
    SYSTEM_CALL_DUP = 10,
    SYSTEM_CALL_GETPID = 11,
    SYSTEM_CALL_SBRK = 12,
    SYSTEM_CALL_SLEEP = 13,
    SYSTEM_CALL_UPTIME = 14,
    SYSTEM_CALL_OPEN = 15,
    SYSTEM_CALL_WRITE = 16,
    SYSTEM_CALL_MKNOD = 17,
    SYSTEM_CALL_UNLINK = 18,
    SYSTEM_CALL_LINK = 19,
    SYSTEM_CALL_MKDIR = 20,
    SYSTEM_CALL_CLOSE = 21,

    SYSTEM_CALL_YIELD = 64,              /* int yield(void) */
    SYSTEM_CALL_LAST_ERROR = 65,         /* int last_error(void): errors.h, of this process */
    SYSTEM_CALL_CLOCK = 66,              /* int64_t clock(void): nanoseconds since boot */
    SYSTEM_CALL_CYCLES = 67,             /* int64_t cycles(void): this CPU's cycle counter */
    SYSTEM_CALL_SETPRIORITY = 68,        /* int setpriority(int pid, int priority) */
    SYSTEM_CALL_SETTICKETS = 69,         /* int settickets(int tickets): of the caller */
    SYSTEM_CALL_SETTICKETS_PID = 70,     /* int settickets_pid(int pid, int tickets) */
    SYSTEM_CALL_SETWEIGHT = 71,          /* int setweight(int pid, int weight) */
    SYSTEM_CALL_GETPINFO = 72,           /* int getpinfo(struct process_info *, int capacity) */
    SYSTEM_CALL_GETCONTEXTSWITCHES = 73, /* int64_t getcontextswitches(void): since boot */
    SYSTEM_CALL_GETSTATS = 74,           /* int getstats(struct system_stats *) */
    SYSTEM_CALL_SETPOLICY = 75,          /* int setpolicy(const char *): "rr", "rr:table-scan" */
    SYSTEM_CALL_GETPOLICY = 76,          /* int getpolicy(char *, int capacity) */
    SYSTEM_CALL_SETTUNABLE = 77,         /* int settunable(const char *name, int64_t value) */
    SYSTEM_CALL_GETTUNABLE = 78,         /* int gettunable(const char *name, int64_t *value) */
    SYSTEM_CALL_MARK = 79,               /* int mark(int kind, uint64_t value): into the trace */
    SYSTEM_CALL_POWEROFF = 80,           /* ends the machine; the host sees the status */
    SYSTEM_CALL_SYNC = 81,               /* int sync(void): all writes are on the disk */
    SYSTEM_CALL_BOOT_ARGUMENT = 82,      /* int boot_argument(const char *name, char *, int n) */
    SYSTEM_CALL_SHARED_MEMORY = 83,      /* void *shared_memory(int64_t bytes): with children */
    SYSTEM_CALL_SETNAME = 84,            /* int setname(const char *): of the caller */
    SYSTEM_CALL_SLEEP_NS = 85,           /* int sleep_ns(int64_t time): relative to now */
    SYSTEM_CALL_SLEEP_UNTIL = 86,        /* int sleep_until_ns(int64_t time): since boot */
    SYSTEM_CALL_CHANNELS_MAKE = 87,      /* int channels_make(int count): for the caller's family */
    SYSTEM_CALL_CHANNEL_TAKE = 88,       /* int channel_take(int channel, int released, int as) */
    SYSTEM_CALL_CHANNEL_GIVE = 89,       /* int channel_give(int channel, int64_t count, int to) */
    SYSTEM_CALL_CHANNEL_MEET = 90,       /* int channel_meet(int channel, int processes) */
    SYSTEM_CALL_SETURGENT = 91,          /* int seturgent(int urgent): enum urgency */
    SYSTEM_CALL_GETCPUSTATS = 92,        /* int getcpustats(int cpu, struct cpu_stats *) */
    SYSTEM_CALL_SETATTRIBUTE = 93,       /* int setattribute(int pid, int kind, int64_t value) */
    SYSTEM_CALL_GETATTRIBUTE = 94,       /* int getattribute(int pid, int kind, int64_t *value) */
    SYSTEM_CALL_SETGROUP = 95,           /* int setgroup(int group, int field, int64_t value) */
    SYSTEM_CALL_SETAFFINITY = 96, /* int setaffinity(int pid, const uint64_t *cpus, int words) */
    SYSTEM_CALL_GETAFFINITY = 97, /* int getaffinity(int pid, uint64_t *cpus, int words) */
};

#define CHANNELS_MAX 128 /* of a family */

/* `released` of SYSTEM_CALL_CHANNEL_TAKE */
#define RELEASE_NONE (-1)

/* `as` of SYSTEM_CALL_CHANNEL_TAKE */
enum take_as {
    TAKE_ANY = 0,     /* it comes from the last process that gave */
    TAKE_LOCK = 1,    /* a lock, which the caller owns until it gives it back */
    TAKE_CEILING = 2, /* the same, of a lock with a ceiling: this plus the highest priority of
                       * the processes that ever take it, */
    TAKE_LAST = TAKE_CEILING + 10, /* which is at most this */
};

/* `to` of SYSTEM_CALL_CHANNEL_GIVE */
enum give_to {
    GIVE_KEEP = 0,    /* items that no process waits for stay until one takes them */
    GIVE_WAITING = 1, /* items that no process waits for are lost */
};

/* `urgent` of SYSTEM_CALL_SETURGENT */
enum urgency {
    URGENT_NOT = 0,
    URGENT_FAMILY = 1, /* the caller and its later children */
    URGENT_ALONE = 2,  /* the caller, but not its children */
};

/* kind of SYSTEM_CALL_MARK */
enum mark_kind {
    MARK_BEGIN = 1, /* the measured window begins. value: the PID of the root, whose children are
                     * measured; 0: the caller is the root */
    MARK_END = 2,   /* … and ends */
    MARK_GROUP = 3, /* value: up to 8 characters, the caller's group in the tables */
    MARK_NOTE = 4,  /* value: anything; shown on the time line */
    MARK_NAME = 5,  /* value: up to 8 characters, the name of the caller's next value */
    MARK_VALUE = 6, /* value: signed; recorded under the last name that the caller gave */
    MARK_JOB = 7,   /* the caller's job is done. value: nanoseconds since boot, the release of
                     * its next job; 0: the announced release will not come */
};

#endif
