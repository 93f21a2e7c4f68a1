/* SPDX-License-Identifier: MIT */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

/*
 * The parts of a simulated machine. Private to sim/.
 *
 * Processes lie in one array by their slots, each followed by the bytes of state that the policy
 * uses; they refer to each other by slot.
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

/* An act of init that workloads do not have: it reaps until the workload's first process has
 * ended. */
enum { STEP_REAP = STEP_COUNT, STEPS_ALL };

enum process_place { PLACE_FREE, PLACE_QUEUED, PLACE_RUNNING, PLACE_BLOCKED, PLACE_ZOMBIE };

/* What a blocked process waits for; its present step is the waiting one. */
enum process_wait {
    WAIT_NONE,
    WAIT_CHILD,
    WAIT_TIMER,   /* its timer is in the heap; also for a child that will arrive */
    WAIT_DUE,     /* its timer has expired, and its CPU is in the kernel, or just before its tick */
    WAIT_CHANNEL, /* it is in the channel's list */
};

/* Takes the place of a CPU in an action from outside (sim/control.h). */
#define OUTSIDE NO_CPU

struct process {
    struct task task;     /* must be first: policies hand out tasks */
    uint64_t left;        /* ns left to compute in its present step */
    uint32_t step;        /* its index in simulator->steps */
    uint32_t link;        /* the next process in the list of a channel, of expired timers or of
                           * urgent processes, or in the ring of zombies; while it sleeps, the
                           * number of its timer */
    uint32_t parent : 24; /* slot, which another process may use by now: see parent_pid */
    uint32_t arrived : 1; /* by itself: no process reaps it */
    uint32_t urgent : 1;  /* before all tasks that the policy orders; the policy does not know it */
    int32_t parent_pid;
    uint32_t zombies;       /* children: the last one to end, whose link is the first; NOBODY */
    uint32_t children : 24; /* that have not been reaped */
    uint32_t place : 3;     /* enum process_place */
    uint32_t known : 1;     /* to the policy */
    uint32_t waits : 3;     /* enum process_wait */
    uint32_t killed : 1;    /* it ends when its CPU is next in the kernel */
};

_Static_assert(sizeof(struct process) <= 224, "with 136 bytes of policy state: 360");
_Static_assert(POLICY_CPUS_MAX <= 1 << ORDER_CPU_BITS, "a timer's order has room for its CPU");
_Static_assert(SIMULATOR_PROCESSES_MAX <= 1u << ORDER_SLOT_BITS, "and for its slot");

struct cpu {
    struct process *current; /* null: idle */
    uint64_t resumes;        /* when it returns, or returned, from the kernel: no interrupts
                              * before */
    uint64_t called;         /* when it is notified to pick again */
    uint64_t turn_end;       /* when the policy must be called for `current`; NEVER */
    uint64_t alarm;          /* of the queue with this number; NEVER */
    uint64_t entered;        /* when it picked `current` */
    uint64_t idle_since;
    uint64_t records; /* of the trace */
    uint32_t id;
    uint32_t due_first; /* timers that have expired, while it is in the kernel, or just before its
                         * tick */
    uint32_t due_last;
    bool reschedule; /* it should pick again, for the reason `why` */
    bool late;       /* its timer interrupt came while it was in the kernel */
    bool late_tick;  /* and that was its tick */
    bool moves;      /* its process must be placed again, when it leaves */
    bool calls;      /* its process has called the kernel, which acts at `resumes` */
    enum preempt_reason why;
};

struct channel {
    uint64_t count;
    uint32_t first; /* waiting processes, by slot */
    uint32_t last;
    uint32_t waiting;  /* their number */
    uint32_t owner;    /* slot of the process that must give before they can continue: it has the
                        * lock, or gave last; another process may use the slot by now: see */
    int32_t owner_pid; /* 0: not known */
    bool is_lock;      /* some process took from it as from a lock */
    uint8_t ceiling;   /* of the lock: 1 more than a priority; 0: none */
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
    size_t characters; /* of names and texts, with their final 0 */
};

struct engine;
struct speeds;

struct simulator {
    /* Needed by every decision. */
    const struct engine *engine;
    struct scheduler scheduler;
    struct cpu *cpus;
    uint64_t *events; /* the tournament of the CPUs' next events: events.h */
    uint32_t event_leaves;
    uint32_t ticked;    /* CPUs below this have had the tick of this moment */
    bool traces_queues; /* positions of queued processes go into the trace, too */
    uint64_t now;
    uint64_t policy_clock; /* offset of the policy's clock from `now` */
    uint64_t next_tick;    /* of any CPU: see ticking.h */
    uint64_t tick_round;
    uint64_t stagger;
    uint32_t ticking;
    uint32_t busy;              /* CPUs that run a process */
    uint64_t attribute_changes; /* times that a process got an attribute, CPUs or a ceiling */
    uint32_t queued;            /* processes, on all queues */
    uint32_t urgent;       /* slot of the first urgent process that waits for a CPU, or NOBODY */
    struct cpu_set idle;   /* and not notified yet */
    struct cpu_set called; /* asked to pick again; the time for each is not planned yet */
    struct timers timers;
    struct trace trace;
    struct simulator_costs costs; /* under the active policy */
    struct simulator_costs all_costs;
    uint64_t step_cost[STEPS_ALL];
    uint64_t step_rest[STEPS_ALL]; /* the part after the kernel has checked for interrupts */
    struct speeds *speeds;         /* null: all CPUs are alike */

    struct arena arena; /* holds all of this, except the engine, the trace's buffer and */
    struct recipe recipe;

    struct workload_step *steps; /* of init, then of all programs */
    uint32_t *program_first;     /* by program: its first step */
    struct player *players;      /* by program */
    char **names;                /* by program */
    char **texts;
    char *text_bytes; /* storage of the texts and names */
    struct channel *channels;
    struct extent used;    /* of all of these */
    struct extent room;    /* the capacity, including workloads that may be added */
    uint32_t *loop_rounds; /* by slot and loop: rounds done */
    uint32_t loop_depth;
    uint64_t *timer_times;    /* by slot and timer: when it last expired */
    uint32_t timer_count;     /* plus one for the time of the fork, if there may be shared timers */
    uint64_t *shared_times;   /* by shared timer; NEVER: no process has used it yet */
    bool affinity_used;       /* some process has had a restricted CPU set */
    struct cpu_set *cpu_sets; /* by slot: the target of task.cpus, unless that is null */

    struct slots slots;
    unsigned char *processes; /* process_bytes each */
    size_t process_bytes;
    char policy_name[64]; /* the active one: "rr:table-scan" */
    uint32_t state_bytes; /* the policy's state of each process */
    bool has_shape;       /* memory for `speeds` is reserved */
    uint32_t process_limit;
    uint32_t most_processes;  /* maximum that lived at once, so far */
    uint64_t policy_run_time; /* of each new task */
    int32_t last_pid;
    int32_t first_pid; /* of the workload's first process; 0: not forked yet */

    uint32_t idle_acts; /* since time last advanced: detects a process that never computes */
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
    /* Runs until the time, the end, or until another policy is activated: see `engine` then. */
    void (*run)(struct simulator *simulator, uint64_t until);
    /* Starts the policy with fresh state and the tunables that are set already. */
    void (*install)(struct simulator *simulator);
    /* Takes out all processes, in the order of service. Returns the first one's slot; the others
     * are linked by `link`. */
    uint32_t (*drain)(struct simulator *simulator);
    /* Queues the processes that drain() returned, and makes every CPU pick again; on behalf of
     * CPU `acting_cpu`, or OUTSIDE. */
    void (*adopt)(struct simulator *simulator, uint32_t acting_cpu, uint32_t first);
    /* Queues init, which no process forked. */
    void (*start)(struct simulator *simulator, struct process *process);

    /* Actions from outside (sim/control.h); the caller has checked them. */
    void (*fork)(struct simulator *simulator, uint32_t program);
    void (*kill)(struct simulator *simulator, struct process *process);
    void (*wake)(struct simulator *simulator, struct process *process);
    void (*migrate)(struct simulator *simulator, struct process *process, uint32_t cpu);
    void (*give)(struct simulator *simulator, struct channel *channel, uint64_t count);
    void (*set_attribute)(struct simulator *simulator, struct process *process,
                          enum attribute_kind kind, uint64_t value);
};

/* In the order of `policies`; generated with the table of policies. */
extern const struct engine *const engines[];

static inline struct process *process_at(const struct simulator *simulator, uint32_t slot)
{
    return (struct process *)(void *)(simulator->processes +
                                      (size_t)slot * simulator->process_bytes);
}

/* Returns the policy's clock. */
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

/* Fails the run with a reason, formatted as by printf, unless it has failed already. */
__attribute__((format(printf, 2, 3))) void fail(struct simulator *simulator, const char *format,
                                                ...);
__attribute__((format(printf, 2, 3))) void set_error(struct simulator_error *error,
                                                     const char *format, ...);

/* Prepares the machine for an action from outside (sim/control.h). Returns false if the run has
 * ended. */
bool begin_act(struct simulator *simulator, struct simulator_error *error);

#endif
