/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_SCHEDULER_CPU_H
#define KERNEL_SCHEDULER_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "../device/device_tree.h"
#include "../sync/spinlock.h"
#include "../time/timer.h"
#include "../trace/trace.h"
#include "../trap/registers.h"

struct process;

/* What machine mode keeps for a hart, in an array by hart. boot/entry.S knows this layout. */
struct machine_mode_state {
    uint64_t saved;             /* a register of the code that was interrupted */
    volatile uint64_t software; /* physical address of this hart's software-interrupt register */
    volatile uint64_t halt;     /* park at the next software interrupt, for good */
    volatile uint64_t halted;   /* parked */
};

/* One CPU's blocks of trace records; touched only by that CPU, but for what LOCK_TRACE guards. */
#define TRACE_BLOCKS 8
struct trace_buffer {
    struct trace_record *next; /* null: no tracing */
    struct trace_record *end;
    struct trace_record *block[TRACE_BLOCKS];
    bool full[TRACE_BLOCKS];   /* waits to leave: guarded by LOCK_TRACE */
    uint32_t current;          /* block being filled */
    struct trace_record *kept; /* the first of that block that has not joined the line to leave */
    bool part_waits;           /* records of a block that was not full: guarded by LOCK_TRACE */
    uint64_t left;             /* nanoseconds; when records last joined that line */
    uint64_t records;
};

/* A CPU. A pointer to it is in register tp while the kernel runs. Touched only by this CPU,
 * unless a field says otherwise. */
struct cpu {
    uint32_t id; /* 0 to machine.cpus - 1 */
    uint64_t hart;
    struct process *current;  /* null: idle. Written with the CPU's run queue locked */
    struct process *previous; /* who is being switched from */
    bool occupied; /* a process was picked and has not left: guarded by the run queue's lock */
    struct queue *locked_queue;     /* held over the switch */
    struct switch_frame idle_frame; /* the idle loop, while a process runs */
    bool reschedule;                /* set by any CPU: pick again before going on */
    enum preempt_reason reschedule_reason;
    bool serving;          /* interrupts: whoever is woken meanwhile is woken by no process */
    struct spinlock *held; /* the lock taken last of those that this CPU holds */

    struct spinlock timer_lock; /* guards the heap, expiring and timer_order */
    struct timer *timers;       /* the earliest */
    struct timer *expiring;     /* its function is being called */
    uint64_t timer_order;
    uint64_t next_tick; /* nanoseconds */

    uint64_t accounted;    /* until when the current process's time is counted, nanoseconds */
    uint64_t idle_since;   /* nanoseconds; when the idle loop was entered */
    uint64_t enter_cycles; /* when the scheduler was entered */
    uint64_t context_switches;
    uint64_t idle_switches;
    uint64_t scheduler_cycles;
    uint64_t idle_time; /* nanoseconds */

    struct trace_buffer trace;
};

extern struct cpu cpus[CPUS_MAX];
extern struct machine_mode_state machine_mode[CPUS_MAX];

static inline struct cpu *this_cpu(void)
{
    struct cpu *cpu;
    __asm__ volatile("mv %0, tp" : "=r"(cpu));
    return cpu;
}

/* Makes another CPU leave wfi or user mode and look at its flags. */
void cpu_interrupt(struct cpu *cpu);
/* In a panic: parks all other CPUs for good, wherever they are. */
void cpu_halt_others(void);
/* Before the machine ends: lets all other CPUs come to a point where they hold nothing, and stay
 * there. The caller holds no lock. Only one CPU returns from it, ever. */
void cpu_stop_others(void);
/* Is called at such a point: stays there if the machine is about to end. */
void cpu_stop_here_if_asked(void);

#endif
