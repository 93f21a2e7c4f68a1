/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_PROCESS_INFO_H
#define SCHEDLAB_ABI_PROCESS_INFO_H

#include <stdint.h>

#define PROCESS_NAME_BYTES 16

enum process_state {
    PROCESS_NEW = 0,      /* being made by fork */
    PROCESS_RUNNABLE = 1, /* on exactly one run queue */
    PROCESS_RUNNING = 2,  /* on exactly one CPU */
    PROCESS_BLOCKED = 3,  /* waits for an event */
    PROCESS_ZOMBIE = 4,   /* has ended; its parent has not waited for it yet */
};

/* why a process is blocked */
enum block_reason {
    BLOCK_NONE = 0,
    BLOCK_SLEEP = 1,   /* sleep() */
    BLOCK_CHILD = 2,   /* wait() */
    BLOCK_PIPE = 3,    /* an empty or a full pipe, an empty channel */
    BLOCK_CONSOLE = 4, /* a line of input */
    BLOCK_DISK = 5,    /* the block device */
    BLOCK_LOCK = 6,    /* a sleeping lock of the kernel */
    BLOCK_JOURNAL = 7, /* space in, or the commit of, the file system's journal */
    BLOCK_EXIT = 8,    /* has ended: never runs again */
    BLOCK_OTHER = 9,   /* anything else; only on Linux, which has many reasons */
};

/* one row of getpinfo() */
struct process_info {
    int32_t pid;
    int32_t parent;
    uint32_t state;  /* enum process_state */
    uint32_t reason; /* enum block_reason */
    uint32_t cpu;
    int32_t priority;
    uint32_t tickets;
    uint32_t weight;
    uint64_t time_slice;   /* ticks */
    uint64_t selections;   /* times picked */
    uint64_t run_time;     /* nanoseconds */
    uint64_t waiting_time; /* nanoseconds spent runnable and not running */
    uint64_t created;      /* nanoseconds since boot */
    uint64_t first_run;    /* nanoseconds since boot; 0: has not run */
    uint64_t voluntary_switches;
    uint64_t involuntary_switches;
    char name[PROCESS_NAME_BYTES];
};

/* what getstats() fills: the machine since boot */
struct system_stats {
    uint32_t cpus;
    uint32_t processes;
    uint64_t tick_ns;
    uint64_t time;             /* nanoseconds since boot */
    uint64_t context_switches; /* to another process */
    uint64_t idle_switches;    /* to idle */
    uint64_t scheduler_cycles; /* spent between leaving a process and entering the next */
    uint64_t idle_time;        /* nanoseconds, over all CPUs */
    uint64_t finished;         /* processes */
    uint64_t memory_pages;
    uint64_t free_pages;
    uint64_t trace_records;
};

/* what getcpustats() fills: a CPU since boot */
struct cpu_stats {
    uint64_t context_switches; /* to another process */
    uint64_t idle_switches;    /* to idle */
    uint64_t idle_time;        /* nanoseconds */
    uint64_t scheduler_cycles; /* spent between leaving a process and entering the next */
    uint64_t queue_waits;      /* times that it waited for the lock of a run queue */
    uint64_t queue_wait_cycles;
    uint64_t process_waits; /* times that it waited for the lock of a process or of their tree */
    uint64_t process_wait_cycles;
};

#endif
