/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_HOST_H
#define LINUX_BPF_HOST_H

/*
 * The memory of the adapter. Policies access tasks, run queues and a scheduler
 * through pointers, so all of these lie in one arena: BPF memory where pointers
 * may be stored and followed.
 *
 * A thread that the policy manages has a slot. Kernel threads have none, nor
 * have threads that came when all slots were used: Linux schedules those
 * itself.
 */

#include "policies/policy.h"

#define SLOTS_MAX  32768
#define SLOT_WORDS (SLOTS_MAX / 64)
#define CPU_WORDS  (POLICY_CPUS_MAX / 64)

/* Where the policy has put a thread. Changes under the lock of its queue. */
enum place {
    PLACE_NOWHERE, /* blocked, or not known yet */
    PLACE_QUEUED,  /* in the policy's queue: enqueue() was called last */
    PLACE_CPU,     /* it has a CPU, or is being sent to one */
};

/*
 * Whether Linux has handed over a queued thread. When a thread leaves its CPU, the policy first
 * queues it, in dispatch(), and picks the next thread. Only then does Linux hand the thread over,
 * by enqueue(). Another CPU may pick the thread in between. That CPU leaves its number here, and
 * enqueue() sends the thread to it.
 */
enum custody {
    CUSTODY_LINUX,   /* it is not queued */
    CUSTODY_LEAVING, /* dispatch() queued it; Linux has not handed it over yet */
    CUSTODY_OURS,    /* it was handed over */
    CUSTODY_SENT,    /* this and higher values: picked while leaving, for CPU (custody -
                      * CUSTODY_SENT) */
};

struct thread_slot {
    struct task task;
    uint64_t policy_state[POLICY_TASK_BYTES / 8];
    struct cpu_set allowed; /* CPUs that Linux allows */
    uint64_t waits_on;      /* the lock behind task.waits_for; under waits_lock */
    uint64_t turn_end;      /* set by the policy at the pick or later; 0: not set */
    uint32_t place;
    uint32_t custody; /* by atomic operations */
    uint32_t known;   /* 1: task_init() was called */
    uint32_t turn;    /* how its turn ends: enum enqueue_reason + 1; 0: it continues */
    uint32_t fresh;   /* it was forked and has not been queued yet */
    uint32_t
        traced; /* its PID in the trace, see learn_traced_pid(); kept only if queues are traced */
    uint32_t stopped;       /* why it was on no CPU and in no queue: enum stop_reason; 0: it is */
    uint32_t control_group; /* the policy's number of its control group */
    uint32_t assumes_parent_group; /* 1: a trace assumes its parent's group */
    uint32_t moves;                /* 1: place() chooses its CPU after its turn */
};
typedef struct thread_slot SHARED_MEMORY slot_t;

struct queue {
    struct run_queue view;
    uint64_t alarm_timer; /* when the timer for the policy's alarm expires; 0: not started */
    uint64_t policy_state[POLICY_QUEUE_BYTES / 8];
};
typedef struct queue SHARED_MEMORY queue_t;

struct host {
    struct scheduler scheduler;
    uint64_t policy_state[POLICY_SCHEDULER_BYTES / 8];
    slot_t *occupant[POLICY_CPUS_MAX];    /* of each CPU; under the lock of its queue */
    uint64_t turn_timer[POLICY_CPUS_MAX]; /* when it expires; 0: not started; accessed by that
                                           * CPU */
    struct machine_shape shape;           /* scheduler.shape points to it */
    uint64_t slots_used[SLOT_WORDS];      /* a bit for each slot; under slots_lock */
    uint32_t users_groups;   /* numbers of groups that users have named: a bit for each */
    uint32_t control_groups; /* numbers of control groups */
    struct queue queues[POLICY_CPUS_MAX];
    struct thread_slot slots[SLOTS_MAX]; /* cleared one by one; everything else when a policy
                                          * begins */
};
typedef struct host SHARED_MEMORY host_t;

#define PAGE_BYTES 4096
#define HOST_PAGES ((sizeof(struct host) + PAGE_BYTES - 1) / PAGE_BYTES)

struct {
    __uint(type, BPF_MAP_TYPE_ARENA);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, HOST_PAGES + 1);
    __ulong(map_extra, 0x1ull << 44); /* its address in programs outside the kernel */
} arena SEC(".maps");

/* A spin lock that fails rather than hangs. A caller that cannot get it ends the policy. */
struct lock {
    struct bpf_res_spin_lock spin;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, POLICY_CPUS_MAX);
    __type(key, uint32_t);
    __type(value, struct lock);
} queue_locks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct lock);
} slots_lock SEC(".maps");

struct slot_of {
    slot_t *slot;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct slot_of);
} slot_of_thread SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct host_settings);
} settings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct machine_shape);
} shape_given SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} requests SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct host_exit);
} exit_info SEC(".maps");

/* Set once by init(), before any thread is known. */
host_t *host;

/* Declares to the verifier the arena of a program's pointers. */

#define USE_ARENA() asm volatile("" : : "r"(&arena))

#endif
