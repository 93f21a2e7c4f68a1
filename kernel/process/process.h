/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_PROCESS_PROCESS_H
#define KERNEL_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/process_info.h"
#include "abi/system_calls.h"
#include "lib/list.h"
#include "memory/address_space.h"
#include "policies/policy.h"
#include "sync/spinlock.h"
#include "sync/wait_queue.h"
#include "trap/registers.h"

struct file_table;
struct channel_set;

struct process {
    int32_t pid;
    char name[PROCESS_NAME_BYTES];
    int last_error; /* of its last system call that failed */

    struct spinlock lock; /* guards state, reason and the change from blocked to runnable */
    enum process_state state;
    enum block_reason reason;
    bool on_cpu; /* its registers are in a CPU: no other CPU may run it */
    bool killed; /* it ends before it returns to user mode */

    /* For the scheduler: guarded by the lock of the run queue of task.cpu. */
    struct task task;
    uint64_t policy_state[POLICY_TASK_BYTES / 8];
    uint32_t policy_generation; /* of the policy that knows this task */
    bool queued;                /* it is in a run queue */
    struct cpu_set cpus;        /* the target of task.cpus, unless that is null */
    enum urgency urgent;        /* if not 0, it runs before all others: the policy never sees it */
    struct list held;           /* in the run queue's urgent list, or while policies are switched */
    uint64_t created;
    bool prints_time; /* prints its lifetime when it ends; set by the process itself */
    uint64_t first_run;
    uint64_t waiting_time;
    uint64_t voluntary_switches;
    uint64_t involuntary_switches;

    struct switch_frame switch_frame; /* callee-saved registers while it does not run */
    void *kernel_stack;               /* its top */
    struct trap_frame *trap_frame;    /* user registers, at the top of the kernel stack */
    struct address_space space;
    struct file_table *files;
    struct channel_set *channels; /* null: none */

    /* The tree: guarded by LOCK_PROCESS_TREE. */
    struct process *parent;
    bool adopted;         /* by init, when its parent ended */
    struct list children; /* that live */
    struct list zombies;  /* ended children, in the order of their ends */
    struct list sibling;  /* in one of the parent's two lists */
    struct list all;      /* in the list of all processes */
    struct list hash;     /* in the PID table */
    struct wait_queue child_ended;

    /* The wait graph: guarded by owners_lock. */
    struct list owned; /* while it waits for another */
    bool owns_nothing; /* it ends: no process waits for it any more */

    int exit_status;
};

/* Returns the process that runs on this CPU, or null in the idle loop. */
struct process *current_process(void);
/* Returns true if the current process has been killed. Long work in the kernel checks it and
 * stops. */
bool current_killed(void);

/*
 * Serves pending interrupts, and yields the CPU if the process's turn has ended. Call it between
 * steps of long work, with no spin lock held.
 */
void preemption_point(void);

#endif
