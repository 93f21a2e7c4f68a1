/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_HOST_H
#define LINUX_BPF_HOST_H

/*
 * The memory of the adapter. Policies see tasks, run queues and a scheduler by
 * pointers, so all of these lie in one arena: memory of the BPF programs, where
 * pointers may be stored and followed.
 *
 * A thread that the policy manages has a slot. Kernel threads have none, nor
 * have threads for which there was no room: Linux serves those by itself.
 */

#include "policies/policy.h"

#define SLOTS_MAX  32768
#define SLOT_WORDS (SLOTS_MAX / 64)
#define CPU_WORDS  (POLICY_CPUS_MAX / 64)

/* Where a thread is, as far as the policy knows. Changes under the lock of its queue. */
enum place {
    PLACE_NOWHERE, /* blocked, or not heard of yet */
    PLACE_QUEUED,  /* in the policy's queue: enqueue() was called last */
    PLACE_CPU,     /* it has a CPU, or is on the way to one */
};

/*
 * Whether Linux has handed a queued thread over. When a thread leaves its CPU, the
 * policy queues it first, by dispatch(), and picks the next one; only then does Linux
 * hand the thread over, by enqueue(). Another CPU may pick the thread in between: that
 * CPU leaves its number here, and enqueue() sends the thread on to it.
 */
enum custody {
    CUSTODY_LINUX,   /* it is not queued */
    CUSTODY_LEAVING, /* dispatch() queued it; Linux is yet to hand it over */
    CUSTODY_OURS,    /* it was handed over */
    CUSTODY_SENT, /* from here on: picked while it was leaving, for CPU (custody - CUSTODY_SENT) */
};

struct thread_slot {
    struct task task;
    uint64_t policy_state[POLICY_TASK_BYTES / 8];
    struct cpu_set allowed; /* CPUs on which Linux lets it run */
    uint64_t waits_on;      /* the lock on which it waits for task.waits_for; under waits_lock */
    uint64_t turn_end;      /* as the policy said when it picked it, or since; 0: it did not */
    uint32_t place;
    uint32_t custody; /* by atomic operations */
    uint32_t known;   /* 1: the policy has had task_init() of it */
    uint32_t turn;    /* how its turn is to end: enum enqueue_reason + 1; 0: it goes on */
    uint32_t fresh;   /* it was forked and has not been queued yet */
    uint32_t
        traced; /* its PID in the trace, see learn_traced_pid(); kept only if queues are traced */
    uint32_t stopped;       /* why it was on no CPU and in no queue: enum stop_reason; 0: it is */
    uint32_t control_group; /* the number that its control group has for the policy */
    uint32_t untold;        /* 1: a trace takes it for one of its parent's group */
    uint32_t moves;         /* 1: it goes on where place() says, if its turn is over */
};
typedef struct thread_slot SHARED_MEMORY slot_t;

struct queue {
    struct run_queue view;
    uint64_t alarm_timer; /* when the timer for the policy's alarm comes; 0: it was not started */
    uint64_t policy_state[POLICY_QUEUE_BYTES / 8];
};
typedef struct queue SHARED_MEMORY queue_t;

struct host {
    struct scheduler scheduler;
    uint64_t policy_state[POLICY_SCHEDULER_BYTES / 8];
    slot_t *occupant[POLICY_CPUS_MAX];    /* of each CPU; under the lock of its queue */
    uint64_t turn_timer[POLICY_CPUS_MAX]; /* when it comes; 0: it was not started; by that CPU */
    struct machine_shape shape;           /* what scheduler.shape leads to */
    uint64_t slots_used[SLOT_WORDS];      /* a bit for each slot; under slots_lock */
    uint32_t users_groups;   /* numbers of groups that users have named: a bit for each */
    uint32_t control_groups; /* that control groups have */
    struct queue queues[POLICY_CPUS_MAX];
    struct thread_slot slots[SLOTS_MAX]; /* cleared one by one, and all else when a policy begins */
};
typedef struct host SHARED_MEMORY host_t;

#define PAGE_BYTES 4096
#define HOST_PAGES ((sizeof(struct host) + PAGE_BYTES - 1) / PAGE_BYTES)

struct {
    __uint(type, BPF_MAP_TYPE_ARENA);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, HOST_PAGES + 1);
    __ulong(map_extra, 0x1ull << 44); /* where it lies for programs outside the kernel */
} arena SEC(".maps");

/* A spin lock that fails rather than hang. A caller that cannot have it ends the policy. */
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

/* Tells the verifier to which arena a program's pointers lead. */

#define USE_ARENA() asm volatile("" : : "r"(&arena))

#endif
