/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_CPU_H
#define KERNEL_SCHEDULER_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/trace_format.h"
#include "device/device_tree.h"
#include "sync/spinlock.h"
#include "trace/trace_buffer.h"
#include "trap/registers.h"

struct process;
struct queue;
struct timer;

#define NO_POLICY_TIME UINT64_MAX

/* A CPU. A pointer to it is in register tp while the kernel runs. Accessed only by this CPU,
 * unless a field's comment differs. */
struct cpu {
    uint32_t id; /* 0 to machine.cpus - 1 */
    uint64_t hart;
    struct process *current;     /* null: idle. Written with the CPU's run queue locked */
    struct process *previous;    /* the process that is being switched from */
    const struct process *moves; /* must be placed again, when it leaves; null: none */
    bool occupied; /* a process was picked and has not left: guarded by the run queue's lock */
    struct queue *locked_queue;     /* held across the switch */
    struct switch_frame idle_frame; /* the idle loop, while a process runs */
    bool reschedule;                /* set by any CPU: pick again before continuing */
    enum preempt_reason reschedule_reason;
    bool after_switch;     /* `expelled` or `still` may be set */
    bool expelled;         /* `previous` must be placed again */
    bool still;            /* idle, with its ticks stopped */
    bool look;             /* set by any CPU: a process waits somewhere that this one may take */
    bool serving;          /* in an interrupt: processes woken now have no waker */
    struct spinlock *held; /* the lock taken last of the locks that this CPU holds */
    const struct spinlock *waits_for; /* another CPU holds it; null: waits for none */

    struct spinlock timer_lock; /* guards the heap and timer_order; is held when expiring is set */
    struct timer *timers;       /* the earliest */
    struct timer *expiring;     /* its function is being called */
    uint64_t timer_order;
    uint64_t next_tick;   /* nanoseconds */
    uint64_t tick_offset; /* from a multiple of the tick */

    /* When the policy must be called, nanoseconds; 0: never. */
    uint64_t turn_end;    /* of the current process */
    uint64_t alarm;       /* of the queue with this CPU's number; written with that queue locked */
    uint64_t alarm_heard; /* the value included in policy_time */
    uint64_t policy_time; /* the earlier of the two; NO_POLICY_TIME: neither */

    uint64_t idle_since;   /* nanoseconds; when the idle loop was entered */
    uint64_t enter_cycles; /* when the scheduler was entered */
    uint64_t context_switches;
    uint64_t idle_switches;
    uint64_t scheduler_cycles;
    uint64_t idle_time;   /* nanoseconds */
    uint64_t queue_waits; /* spent waiting for the lock of a run queue */
    uint64_t queue_wait_cycles;
    uint64_t process_waits; /* spent waiting for the locks of processes and of their tree */
    uint64_t process_wait_cycles;

    struct trace_buffer trace;
};

extern struct cpu cpus[CPUS_MAX];

static inline struct cpu *this_cpu(void)
{
    struct cpu *cpu;
    __asm__ volatile("mv %0, tp" : "=r"(cpu));
    return cpu;
}

/* Makes another CPU leave wfi or user mode and check its flags. */
void cpu_interrupt(struct cpu *cpu);
/* Parks all other CPUs permanently, wherever they are. For a panic. */
void cpu_halt_others(void);
/* Called before the machine ends: waits until all other CPUs hold no locks, and stops them
 * there. The caller holds no lock. Only one CPU ever returns from it. */
void cpu_stop_others(void);
/* Called at such a point. Does not return if the machine is about to end. */
void cpu_stop_if_requested(void);

#endif
