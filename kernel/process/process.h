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
    bool killed; /* it ends before it is back in user mode */

    /* For the scheduler: guarded by the lock of the run queue of task.cpu. */
    struct task task;
    uint64_t policy_state[POLICY_TASK_BYTES / 8];
    uint32_t policy_generation; /* of the policy that knows this task */
    bool queued;                /* it is in a run queue */
    struct cpu_set cpus;        /* what task.cpus leads to, unless that is null */
    enum urgency urgent;        /* runs before all others, if not 0: the policy never sees it */
    struct list held;           /* in the run queue's urgent ones, or while policies are switched */
    uint64_t created;
    bool prints_time; /* when it ends: from its creation until then; set by the process itself */
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
    bool adopted;         /* by init, when its own parent ended */
    struct list children; /* that live */
    struct list zombies;  /* children that have ended, the first to end first */
    struct list sibling;  /* in one of the parent's two lists */
    struct list all;      /* in the list of all processes */
    struct list hash;     /* in the PID table */
    struct wait_queue child_ended;

    /* Who waits for whom: guarded by owners_lock. */
    struct list owned; /* while it waits for another */
    bool owns_nothing; /* it ends: no process waits for it any more */

    int exit_status;
};

/* Returns the process that runs on this CPU, or null in the idle loop. */
struct process *current_process(void);
/* Has the current process been killed? Long work inside the kernel asks and gives up. */
bool current_killed(void);

/*
 * Serves interrupts that are pending, and gives the CPU away if its turn is over.
 * Call it between steps of long work, with no spin lock held.
 */
void preemption_point(void);

#endif
