/* SPDX-License-Identifier: MIT */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

/*
 * The parts of a simulated machine. Private to sim/.
 *
 * Processes are in one array, by slot. Each process is followed by the policy's state of the
 * process. Processes refer to each other by slot.
 */

#include <stdio.h>

#include "abi/process_info.h"
#include "abi/system_calls.h"
#include "abi/trace_format.h"
#include "policies/registry.h"
#include "policies/support/cpu_set.h"
#include "sim/arena.h"
#include "sim/recipe.h"
#include "sim/simulator.h"
#include "sim/slots.h"
#include "sim/timers.h"
#include "sim/trace.h"

#define NOBODY   UINT32_MAX /* no slot */
#define NEVER    UINT64_MAX
#define TIME_MAX (1ull << 61) /* ns: sums of two do not overflow */
/* The PID of init, which reaps orphans and forks the first process of the workload. */
#define FIRST_SLOT 0
/* Represents the program of init, whose steps precede those of all programs. */
#define INIT_PROGRAM UINT32_MAX
#define INIT_STEPS   3

/* A step of init that workloads cannot use: init reaps until the workload's first process has
 * ended. */
enum { STEP_REAP = STEP_COUNT, STEPS_ALL };

enum process_place { PLACE_FREE, PLACE_QUEUED, PLACE_RUNNING, PLACE_BLOCKED, PLACE_ZOMBIE };

/* The kind of event that a blocked process waits for, in its present step. */
enum process_wait {
    WAIT_NONE,
    WAIT_CHILD,
    WAIT_TIMER,   /* its timer is in the heap; also used to wait for an arrival */
    WAIT_DUE,     /* its timer has expired, and its CPU is in the kernel, or just before its tick */
    WAIT_CHANNEL, /* it is in the channel's list */
};

/* The "CPU" of actions from outside the machine (sim/control.h). */
#define OUTSIDE NO_CPU

struct process {
    struct task task;     /* must be first: a task that a policy returns is cast to its process */
    uint64_t left;        /* remaining computing time (ns) of its present step */
    uint32_t step;        /* its index in simulator->steps */
    uint32_t link;        /* the next process in the list of a channel, of expired timers or of
                           * urgent processes, or in the ring of zombies; while it sleeps, the
                           * number of its timer */
    uint32_t parent : 24; /* the parent's slot; another process may use this slot by now: see
                           * parent_pid */
    uint32_t arrived : 1; /* arrived from outside: no process reaps this process */
    uint32_t urgent : 1;  /* picked before all tasks; not known to the policy */
    int32_t parent_pid;
    uint32_t zombies;       /* slot of the child that ended last; its `link` is the child that ended
                             * first */
    uint32_t children : 24; /* children that have not been reaped */
    uint32_t place : 3;     /* enum process_place */
    uint32_t known : 1;     /* known to the policy */
    uint32_t waits : 3;     /* enum process_wait */
    uint32_t killed : 1;    /* the process ends when its CPU is next in the kernel */
};

_Static_assert(sizeof(struct process) <= 224, "with 136 bytes of policy state: 360");
_Static_assert(POLICY_CPUS_MAX <= 1 << ORDER_CPU_BITS, "a timer's order has room for its CPU");
_Static_assert(SIMULATOR_PROCESSES_MAX <= 1u << ORDER_SLOT_BITS, "and for its slot");

struct cpu {
    struct process *current; /* null: idle */
    uint64_t resumes; /* when the CPU returns, or returned, from the kernel; no interrupts before */
    uint64_t called;  /* when the CPU is notified to pick again */
    uint64_t turn_end; /* when the policy must be called for `current`, or NEVER */
    uint64_t alarm;    /* alarm of the queue with the CPU's number, or NEVER */
    uint64_t entered;  /* when the CPU picked `current` */
    uint64_t idle_since;
    uint64_t records; /* trace records so far */
    uint32_t id;
    uint32_t due_first; /* expired timers that wait for the kernel or the tick */
    uint32_t due_last;
    bool reschedule; /* the CPU should pick again, for the reason `why` */
    bool late;       /* a timer interrupt is pending, because the CPU was in the kernel */
    bool late_tick;  /* the pending interrupt is a tick */
    bool moves;      /* the process must be placed again when it leaves the CPU */
    bool calls;      /* the process has called the kernel, which performs the act at `resumes` */
    enum preempt_reason why;
};

struct channel {
    uint64_t count;
    uint32_t first; /* waiting processes, by slot */
    uint32_t last;
    uint32_t waiting; /* number of waiting processes */
    uint32_t owner;   /* slot of the process that must give an item before the waiting processes can
                       * continue: it holds the lock, or gave last; another process may use the slot
                       * by now: see owner_pid */
    int32_t owner_pid; /* 0: not known */
    bool is_lock;      /* some process used the channel as a lock */
    uint8_t ceiling;   /* the lock's ceiling: a priority plus 1; 0: none */
};

/* The latest process that was forked to run a program. */
struct player {
    uint32_t slot;
    int32_t pid;
};

/* The sizes of a workload's parts. */
struct extent {
    uint32_t steps;
    uint32_t programs;
    uint32_t texts;
    uint32_t channels;
    uint32_t shared_timers;
    size_t characters; /* characters of names and texts, including each final 0 */
};

struct engine;
struct sched_ext;
struct speeds;

struct simulator {
    /* Needed by every decision. */
    const struct engine *engine;
    struct scheduler scheduler;
    struct cpu *cpus;
    uint64_t *events; /* the tournament of the CPUs' next events: events.h */
    uint32_t event_leaves;
    uint32_t ticked;    /* CPUs with lower numbers have had the tick of this moment */
    bool traces_queues; /* the trace also records positions of queued processes */
    uint64_t now;
    uint64_t policy_clock; /* offset of the policy's clock from `now` */
    uint64_t next_tick;    /* time of the next tick of any CPU: see ticking.h */
    uint64_t tick_round;
    uint64_t stagger;
    uint32_t ticking;
    uint32_t busy;              /* CPUs that run a process */
    uint64_t attribute_changes; /* number of changes of attributes, CPU sets and ceilings */
    uint32_t queued;            /* processes in all queues */
    uint32_t urgent;       /* slot of the first urgent process that waits for a CPU, or NOBODY */
    struct cpu_set idle;   /* idle CPUs that have not been notified yet */
    struct cpu_set called; /* CPUs asked to pick again, at a time that is not planned yet */
    struct timers timers;
    struct trace trace;
    struct simulator_costs costs; /* costs under the active policy */
    struct simulator_costs all_costs;
    uint64_t step_cost[STEPS_ALL];
    uint64_t step_rest[STEPS_ALL]; /* the part after a check for interrupts */
    struct speeds *speeds;         /* null: all CPUs are alike */
    struct sched_ext *sched_ext;   /* null: the engine is that of a policy */

    struct arena arena; /* holds everything, except the engine, the trace's buffer, `recipe` and
                         * `sched_ext` */
    struct recipe recipe;

    struct workload_step *steps; /* steps of init, then of all programs */
    uint32_t *program_first;     /* by program: index of the first step */
    struct player *players;      /* by program */
    char **names;                /* by program */
    char **texts;
    char *text_bytes; /* storage of the texts and names */
    struct channel *channels;
    struct extent used;    /* the used part of these arrays */
    struct extent room;    /* the capacity, including workloads that may be added */
    uint32_t *loop_rounds; /* by slot and loop: finished rounds */
    uint32_t loop_depth;
    uint64_t *timer_times;    /* by slot and timer: time of the last expiry */
    uint32_t timer_count;     /* plus one for the time of the fork, if there may be shared timers */
    uint64_t *shared_times;   /* the last expiry of each shared timer; NEVER: not used yet */
    bool affinity_used;       /* some process has had a restricted CPU set */
    struct cpu_set *cpu_sets; /* by slot: the target of task.cpus, unless that is null */

    struct slots slots;
    unsigned char *processes; /* process_bytes each */
    size_t process_bytes;
    char policy_name[64]; /* the active policy, such as "rr:table-scan" */
    uint32_t state_bytes; /* bytes of the policy's state of each process */
    bool has_shape;       /* memory for `speeds` is reserved */
    uint32_t process_limit;
    uint32_t most_processes;  /* maximum number of simultaneous processes so far */
    uint64_t policy_run_time; /* initial run time of each new task, as the policy sees it */
    int32_t last_pid;
    int32_t first_pid; /* PID of the workload's first process; 0: not forked yet */

    uint32_t idle_acts; /* acts since time last advanced, to detect a process that never computes */
    uint64_t acted_at;
    enum simulator_status status;
    bool finished;
    struct simulator_counts counts;
    struct simulator_error error;

    struct run_queue *queues;
    uint64_t *queue_states;
    uint64_t scheduler_state[POLICY_SCHEDULER_BYTES / 8];
};

/*
 * The part of the simulator that calls the policy's hooks: compiled once for each policy, from
 * engine.c, so that the compiler can inline the calls.
 */
struct engine {
    const struct policy *policy;
    /* Runs until the time, until the end, or until another policy is activated. Then `engine` has
     * changed. */
    void (*run)(struct simulator *simulator, uint64_t until);
    /* Starts the policy with new state. The tunables must be set. */
    void (*install)(struct simulator *simulator);
    /* Takes out all processes, in the order of service. Returns the slot of the first process;
     * `link` links the others. */
    uint32_t (*drain)(struct simulator *simulator);
    /* Queues the processes that drain() returned, and makes every CPU pick again.
     * `acting_cpu`: the CPU that changed the policy, or OUTSIDE. */
    void (*adopt)(struct simulator *simulator, uint32_t acting_cpu, uint32_t first);
    /* Ends the scheduler when the run ends; null: nothing is to be done. */
    void (*finish)(struct simulator *simulator);
    /* Queues init, which no process forked. */
    void (*start)(struct simulator *simulator, struct process *process);

    /* Actions from outside (sim/control.h). The caller has checked the arguments. */
    void (*fork)(struct simulator *simulator, uint32_t program);
    void (*kill)(struct simulator *simulator, struct process *process);
    void (*wake)(struct simulator *simulator, struct process *process);
    void (*migrate)(struct simulator *simulator, struct process *process, uint32_t cpu);
    void (*give)(struct simulator *simulator, struct channel *channel, uint64_t count);
    void (*set_attribute)(struct simulator *simulator, struct process *process,
                          enum attribute_kind kind, uint64_t value);
};

/* All engines in the order of `policies`; generated with the table of policies. */
extern const struct engine *const engines[];

static inline struct process *process_at(const struct simulator *simulator, uint32_t slot)
{
    return (struct process *)(void *)(simulator->processes +
                                      (size_t)slot * simulator->process_bytes);
}

/* Returns the time (ns) of the policy's clock. */
static inline uint64_t policy_now(const struct simulator *simulator)
{
    return simulator->now + simulator->policy_clock;
}

static inline uint32_t pid_of(const struct process *process)
{
    return process ? (uint32_t)process->task.pid : 0;
}

static inline const struct workload_step *step_of(const struct simulator *simulator,
                                                  const struct process *process)
{
    return &simulator->steps[process->step];
}

static inline bool is_computing(const struct workload_step *step)
{
    return step->kind <= STEP_RUN_UNTIL;
}

/* Fails the run with a reason, formatted as by printf. Keeps the first reason if the run has failed
 * already. */
__attribute__((format(printf, 2, 3))) void fail(struct simulator *simulator, const char *format,
                                                ...);
__attribute__((format(printf, 2, 3))) void set_error(struct simulator_error *error,
                                                     const char *format, ...);

/* Prepares the machine for an action from outside (sim/control.h). Returns false if the run has
 * ended. */
bool begin_act(struct simulator *simulator, struct simulator_error *error);

#endif
