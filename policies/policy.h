/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_POLICY_H
#define SCHEDLAB_POLICY_H

/*
 * The policy interface, version 2.
 *
 * A policy is one C file that defines one `struct policy`. The same source is compiled into the
 * kernel, into programs of the host, and into a Linux sched_ext program; so a policy is
 * freestanding C that
 *
 *   - keeps no variables: its data lives in the state that the host gives it for each scheduler,
 *     run queue and task;
 *   - calls nothing but the functions of policies/: time, randomness and locks
 *     are the host's, and reach it as data;
 *   - says what should happen by what it returns; the host makes it happen;
 *   - guards each loop with LOOP_GUARD, and begins what its turns count or choose
 *     with LOOP_START; never recurses, never divides by zero,
 *     has no more than five parameters to a function and 512 bytes of stack.
 *
 * Words: a task is what the host schedules (a process of the kernel, a thread of Linux). A task is
 * queued while it is runnable and not running: from its enqueue() until pick(), dequeue() or
 * steal() takes it out.
 *
 * docs/policy-interface.md explains all this with an example, and gives the order of a host's
 * actions at the same time.
 */

#ifdef __bpf__
/* The host's BPF program has defined the fixed-width types, bool, NULL, can_loop and unseen()
 * before. */
#define SHARED_MEMORY     __attribute__((address_space(1))) /* a BPF arena */
#define LOOP_GUARD        can_loop
#define LOOP_START(value) unseen(value)
#define POLICY_FUNCTION   static __attribute__((noinline, unused))
#define POLICY_DEFINITION static __attribute__((unused)) const struct policy
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifndef SHARED_MEMORY /* in BPF: the address space of an arena */
#define SHARED_MEMORY
#endif
#define LOOP_GUARD        true
#define LOOP_START(value) (value)
#define POLICY_FUNCTION   static __attribute__((unused))
#define POLICY_DEFINITION const struct policy
#endif

/* Rare work of hooks, in a separate function: inlined, its registers would slow down the common
 * path. */
#define POLICY_RARE_FUNCTION static __attribute__((noinline, unused))

/* BPF allows at most eight nested calls, including the host's. */
#define POLICY_INLINE static inline __attribute__((always_inline, unused))

/* Bytes of policy state; the host gives them zeroed, aligned to 8. */
#define POLICY_TASK_BYTES      160
#define POLICY_QUEUE_BYTES     5120
#define POLICY_SCHEDULER_BYTES 4096
#define POLICY_TUNABLES_MAX    32
#define POLICY_CPUS_MAX        1024

/* Attributes of a task: set by users, inherited by fork. */
#define PRIORITY_HIGHEST 0
#define PRIORITY_LOWEST  10
#define PRIORITY_DEFAULT 5
#define TICKETS_MAX      1000000
#define TICKETS_DEFAULT  1
#define WEIGHT_MAX       10
#define WEIGHT_DEFAULT   5
#define NICE_FIRST       (-20) /* served best */
#define NICE_LAST        19
#define NICE_DEFAULT     0
#define TASK_TIME_MAX    1000000000000 /* ns, of `slice` and what follows it; 0: the task has none */

/* Groups of tasks: a tree whose root is group 0. */
#define GROUPS_MAX           32
#define GROUP_WEIGHT_MAX     10000 /* as cpu.weight of Linux control groups */
#define GROUP_WEIGHT_DEFAULT 100
#define GROUP_TIME_LEAST     1000000    /* ns, of a quota and of a period */
#define GROUP_PERIOD_MOST    1000000000 /* ns */
#define GROUP_PERIOD_DEFAULT 100000000

#define NO_CPU 0xffffffffu /* UINT32_MAX, which a BPF program need not have */

/* A set of CPUs: a bit for each. */
struct cpu_set {
    uint64_t words[POLICY_CPUS_MAX / 64];
};

typedef struct task SHARED_MEMORY task_t;
typedef struct run_queue SHARED_MEMORY run_queue_t;
typedef struct scheduler SHARED_MEMORY scheduler_t;

/*
 * A task as policies see it. The policy owns `level`, `lent`, `next`, `previous` and the memory
 * that `state` points to; the rest is the host's.
 *
 * Users may change the attributes (policies/support/attributes.h lists them) at any time. A queued
 * task is taken out by dequeue(), changed, and enqueued again (ENQUEUE_MOVED). So what the policy
 * read in enqueue() still holds in dequeue(). A running task is changed, and its CPU picks again; a
 * blocked task is only changed. Each change calls changed(). The set of CPUs allowed for a task is
 * such an attribute, too. A task that is queued or runs on a CPU outside the new set is queued on a
 * CPU in it.
 */
struct task {
    int32_t pid;
    uint32_t slot;    /* the lowest number that no living or unreaped task had when it was forked */
    int32_t priority; /* PRIORITY_HIGHEST to PRIORITY_LOWEST */
    uint32_t tickets; /* 1 to TICKETS_MAX */
    uint32_t weight;  /* 1 to WEIGHT_MAX */
    int32_t nice;     /* NICE_FIRST to NICE_LAST, as on Unix */
    uint32_t cpu;     /* where it runs, is queued, or last ran */
    uint32_t group;   /* 0 to GROUPS_MAX - 1: scheduler->group */
    uint64_t run_time;     /* nanoseconds on a CPU, until `counted`: see run_time_now() */
    uint64_t counted;      /* ns: when run_time was last counted; before picked_since: not now */
    uint64_t queued_since; /* ns: when it was enqueued last */
    uint64_t picked_since; /* ns: when it was picked last */
    uint64_t selections;   /* times it was picked */
    uint64_t level;        /* displayed: an effective priority, a queue; 0 at first */
    uint64_t lent;         /* lent by tasks that wait for it; 0 at first */
    task_t *next;          /* links, for the queue that holds it */
    task_t *previous;
    void SHARED_MEMORY *state; /* POLICY_TASK_BYTES */
    uint64_t slice;            /* nanoseconds that it wants to run at a time */
    /* Of a task with deadlines: it needs `runtime` ns in each `period` of ns, within `deadline`
     * of the period's beginning (0: within the period). It has deadlines while runtime and
     * period are not 0; its children have none. Without a period, `runtime` is the ns of work
     * that remained when it was set; 0: not known. */
    uint64_t runtime;
    uint64_t deadline; /* ns; see runtime */
    uint64_t period;   /* ns; see runtime */
    /* The wait graph, if scheduler->follows_waits: read only in waiters_changed(). */
    task_t *waits_for;    /* the task that must act before this one, which is blocked; or null */
    task_t *first_waiter; /* the last to come of the tasks that wait for this one; each has */
    task_t *next_waiter;  /* the next waiter here */
    task_t *previous_waiter;
    uint16_t ceiling;   /* 1 more than the highest ceiling of its locks; 0: no lock has one */
    uint16_t waker_cpu; /* where `waker` was */
    int32_t waker;      /* PID of the task that woke it last; 0: an interrupt did, or none yet */
    const struct cpu_set SHARED_MEMORY *cpus; /* for task_may_run_on(); null: all */
};

#define SAID_BYTES 48

/* An annotation; SAY() makes it. */
struct said {
    uint32_t told; /* 1: present, and the host has not taken it yet */
    int32_t pid;   /* of the task that it describes; 0: none */
    uint64_t text[SAID_BYTES / 8];
    int64_t value; /* for the first {} of the text */
    int32_t other; /* for the second */
};

/* One CPU's run queue, or the one run queue of all CPUs (see shared_queue). */
struct run_queue {
    scheduler_t *scheduler;
    uint64_t now;     /* nanoseconds; the time of the hook's call */
    uint32_t cpu;     /* whose queue this is; 0 for a shared one */
    uint32_t queued;  /* tasks queued here; updated after the hook that queues or takes out */
    uint32_t running; /* running tasks of this queue; excludes a task being picked or stopped */
    task_t *current;  /* the running task, if the queue serves one CPU and the policy knows the
                       * task; null in its own stopped() and in pick() */
    uint64_t remark;  /* pick() may give its reason here (a ticket, a level); it goes into the
                       * trace */
    /* Requests of the policy, as times on the clock of `now`; 0: none. */
    uint64_t turn_end; /* ns; set by pick(), tick() and turn_over(): when to call turn_over() */
    uint64_t alarm;    /* ns; set by any locked hook: when to call alarm(); a past time means now */
    uint32_t held;     /* the policy's count of queued tasks that may not run now: see pick() */
    struct said said;  /* set by SAY() in any locked hook */
    bool bound;        /* a task that may not run on every CPU has been queued here */
    void SHARED_MEMORY *state; /* POLICY_QUEUE_BYTES */
};

/*
 * A group of tasks and of other groups. Users may change it at any time: no hook is called, and a
 * value that a hook reads may be slightly stale. The policy keeps its state of groups as an array
 * of GROUPS_MAX in a queue's state or in the scheduler's.
 */
struct share_group {
    uint32_t parent; /* a group with a lower number; of the root: 0 */
    uint32_t weight; /* relative to its siblings: 1 to GROUP_WEIGHT_MAX */
    uint64_t
        quota; /* nanoseconds on all CPUs that its tasks may have in each period; 0: no limit */
    uint64_t period; /* nanoseconds; it begins whenever the time is a multiple of it */
};

/*
 * The machine's shape: which CPUs share a core, a cache and a node, the distances between nodes,
 * and the speed of each CPU. policies/machine_shape.h reads it. A core lies in one cache, a cache
 * in one node. Only `capacity_now` ever changes, and may be slightly stale.
 */
#define CAPACITY_FULL    1024 /* of the machine's fastest CPU, as in Linux */
#define SHAPE_KINDS_MAX  16
#define SHAPE_LEVELS_MAX 16
#define SHAPE_NODES_MAX  64
#define DISTANCE_LOCAL   10 /* within a node, as in ACPI's SLIT */

struct cpu_place {
    uint16_t core;         /* CPUs of one core are its hardware threads */
    uint16_t cache;        /* the last-level cache that CPUs share */
    uint16_t node;         /* of memory: below `nodes` */
    uint16_t kind;         /* below `kinds` */
    uint16_t sibling;      /* the next CPU of its core, in a ring: itself if it is alone */
    uint16_t capacity_now; /* at its present frequency level */
};

/* CPUs of a kind are equally fast. */
struct cpu_kind {
    uint32_t levels;                     /* of frequency: 1 or more */
    uint32_t capacity[SHAPE_LEVELS_MAX]; /* at each level, the highest first */
};

struct machine_shape {
    uint32_t nodes;
    uint32_t kinds;
    struct cpu_place cpu[POLICY_CPUS_MAX];
    struct cpu_kind kind[SHAPE_KINDS_MAX];
    uint8_t distance[SHAPE_NODES_MAX][SHAPE_NODES_MAX]; /* from a node to another */
};

/* One system of CPUs under one policy. */
struct scheduler {
    uint32_t cpus;
    uint32_t queues;      /* run queues in use: cpus, or 1 */
    uint64_t tick_ns;     /* length of a tick */
    uint64_t overhead_ns; /* part of a task's run_time that the host itself takes at a tick or
                           * after a pick, usually at most this; 0: none */
    uint64_t seed;        /* of the policy's random generator, if it has one */
    bool ending;          /* another policy takes over: pick() gives the tasks that are held, too */
    bool follows_waits;   /* set by scheduler_init(): call waiters_changed() */
    bool orders_waiters;  /* set by scheduler_init(): call overtakes() */
    int64_t tunable[POLICY_TUNABLES_MAX]; /* values now, in the order of policy->tunables */
    void SHARED_MEMORY *state;            /* POLICY_SCHEDULER_BYTES; see struct policy */
    run_queue_t *queue[POLICY_CPUS_MAX];
    uint32_t groups; /* 1 more than the highest number of a group that users have set; 0: none */
    struct share_group
        group[GROUPS_MAX]; /* a task in a group that is not set is one of the root's */
    const struct machine_shape SHARED_MEMORY *shape; /* null: all CPUs are alike */
};

enum enqueue_reason {
    ENQUEUE_NEW,       /* forked */
    ENQUEUE_WOKEN,     /* was blocked */
    ENQUEUE_EXPIRED,   /* was running until tick() said TICK_PREEMPT */
    ENQUEUE_PREEMPTED, /* was running until another task preempted it, or its attribute changed */
    ENQUEUE_YIELDED,   /* gave up its CPU by yield() */
    ENQUEUE_MOVED,     /* from another queue, or back after an attribute changed */
    ENQUEUE_ADOPTED,   /* the policy has just been switched to */
};

enum stop_reason {
    STOP_RUNNABLE, /* enqueue() with its reason follows */
    STOP_BLOCKED,
    STOP_ENDED,
};

enum tick_verdict {
    TICK_CONTINUE,
    TICK_PREEMPT, /* the task's turn ends */
    TICK_KILL,    /* end the task */
    TICK_MOVE,    /* its turn ends, and place() chooses its CPU */
};

/* The attribute that determines a task's share of the CPU (abi/trace_format.h has the same
 * numbers). */
enum share_attribute {
    SHARES_EQUAL = 0, /* none does */
    SHARES_BY_TICKETS = 2,
    SHARES_BY_WEIGHT = 3,
    SHARES_BY_NICE = 4,         /* the weights of nice levels: nice_weights.h */
    SHARES_BY_GROUPS = 9,       /* those of groups and, within them, of nice levels */
    SHARES_BY_CURRENCIES = 100, /* of groups and, within them, tickets: no attribute's own number */
};

/* Whether the policy uses scheduler->group: a host with its own groups passes those on, too. */
enum group_use {
    GROUPS_UNUSED,
    GROUPS_BY_TUNABLE, /* under some values of tunables */
    GROUPS_ALWAYS,
};

/* The meaning of queue->remark when the policy picks. */
enum remark_kind {
    REMARK_NONE,   /* nothing */
    REMARK_LEVEL,  /* the task's serving level */
    REMARK_TICKET, /* the ticket that was drawn: see ticket_parts() */
    REMARK_TIME,   /* nanoseconds */
};

/* What task->level says. */
enum level_order {
    LEVELS_NONE,         /* nothing: the policy has no levels */
    LEVELS_LOWEST_FIRST, /* level 0 is served before all others */
    LEVELS_HIGHEST_FIRST,
};

/* The effect of `priority`: does queueing theory know the mean times of this policy? */
enum priority_rule {
    PRIORITIES_NONE,    /* it is not */
    PRIORITIES_WAIT,    /* the lowest number is next when the running task ends or blocks */
    PRIORITIES_PREEMPT, /* the lowest number preempts */
};

/* How the cost of enqueue() and pick() grows with the number of tasks, as `./schedlab dev bench`
 * verifies. */
enum cost_growth {
    COST_UNSAID,
    COST_CONSTANT,
    COST_LOGARITHMIC,
};

struct tunable {
    const char *name;
    const char *meaning; /* one line, with the unit */
    int64_t minimum;
    int64_t standard; /* the policy's own default */
    int64_t maximum;
};

struct preset_value {
    const char *tunable;
    int64_t value;
};

struct preset {
    const char *name;
    const char *meaning;
    struct preset_value values[POLICY_TUNABLES_MAX]; /* ends with a null name; others: standard */
};

/* Commands of sched_status with another meaning under one preset. PIDs that do not exist are
 * accepted and have no effect. */
struct preset_commands {
    const char *preset;
    const char *const *numbered; /* what the numbers from 0 choose; ends with a null. Any other
                                  * number is accepted and has no effect. */
    uint32_t weight;             /* the weight that replaces a weight out of range */
};

/*
 * Hooks marked "locked" are called with the lock of `queue` held, and may touch all of its state
 * and of its tasks. The others hold no lock: they may read any queue's `now`, `queued` and
 * `running`, and numbers in its state, which may be slightly stale. The scheduler's state, as
 * scheduler_init() leaves it, is read by all; a hook that changes it later uses atomic operations
 * (__sync_fetch_and_add()). A null hook does nothing; each hook's comment says what that means.
 *
 * Switching to a policy: all state is zero, tunables have their values, and the host calls
 * scheduler_init(), shared_queue(), and queue_init() for each queue. A task that is alive already
 * becomes known to the policy when it is next queued: task_init() without a parent, then
 * enqueue(ENQUEUE_ADOPTED). For queued tasks this happens at once, in the old policy's order.
 * Running tasks leave their CPUs as soon as they can. Before that no hook except place() is called
 * for a task.
 *
 * Tunables do not change under an active policy: setting one switches to the policy again, in the
 * same way.
 */
struct policy {
    const char *name;
    const char *meaning; /* one line */
    const char *source;  /* author and year of the algorithm */
    /* One sentence each, for displays of the policy's decisions. */
    const char *order;  /* the order of service of a queue's tasks */
    const char *levels; /* what its levels are; null: it has none */
    const char *remark; /* why a task was picked, with {} for the value of queue->remark; null:
                         * not given */
    const char *boost;  /* the tunable: ticks from one boost to the next; null: none */
    /* The task attributes that affect decisions, separated by spaces, by their names in workload
     * files of the simulator. "nice:linux=1": only while that tunable has that value. Null: not
     * declared. */
    const char *reads;
    enum level_order level_order;
    enum remark_kind remark_kind;
    enum priority_rule priorities;
    enum cost_growth cost;
    const struct tunable *tunables;
    uint32_t tunable_count;
    const struct preset *presets;
    uint32_t preset_count;
    const char *by_number; /* the preset that the policy's number chooses; null: none */
    const struct preset_commands *commands; /* null: the commands of all policies */
    bool speaks;                            /* it annotates decisions with SAY() */
    enum group_use by_groups;
    /* A task that may run waits for at most this many rounds, and then for the next boost if
     * there is one. In a round it has one turn of time_slice(). Each other task has one turn for
     * each time that its share contains this task's share, at least one. 0: a task may starve.
     * Tasks that are held do not count. */
    uint32_t rounds;
    /* Bytes of a task's state that the policy uses: a host may give it no more. 0: all of
     * POLICY_TASK_BYTES. */
    uint32_t task_bytes;

    /* Required, locked. */
    void (*enqueue)(run_queue_t *queue, task_t *task, enum enqueue_reason reason);
    /* Required, locked. Takes out a queued task that will not run. */
    void (*dequeue)(run_queue_t *queue, task_t *task);
    /* Required, locked. Takes out the task to run next on `cpu`, of those allowed there. Returns
     * null only if no such task is queued, or if all are held; then queue->alarm says when that
     * may end. If it returns null, it changes nothing that affects later decisions. */
    task_t *(*pick)(run_queue_t *queue, uint32_t cpu);

    /* Required, locked. Called at each tick of a CPU that runs `task`. */
    enum tick_verdict (*tick)(run_queue_t *queue, task_t *task);
    /* Required, no lock. Returns the ticks that `task` may run when picked; UINT64_MAX: without
     * limit. */
    uint64_t (*time_slice)(const scheduler_t *scheduler, const task_t *task);

    /* No lock, before any task; the first one before there are queues. Null: state stays zero. */
    void (*scheduler_init)(scheduler_t *scheduler);
    void (*queue_init)(run_queue_t *queue);
    /* With or without the lock, before the task's first enqueue(). The task is forked by
     * `parent`, which runs and calls this itself, or adopted (null). Null hook: its state stays
     * zero. */
    void (*task_init)(scheduler_t *scheduler, task_t *task, const task_t *parent);
    /* With or without the lock. The task has ended. */
    void (*task_exit)(scheduler_t *scheduler, task_t *task);
    /* Locked. A picked task leaves its CPU. */
    void (*stopped)(run_queue_t *queue, task_t *task, enum stop_reason reason);
    /* Locked. Called while `task` still runs at or after the last queue->turn_end of its CPU.
     * The verdict is as tick()'s; the hook may set queue->turn_end again. Null hook: the policy
     * never sets turn_end. */
    enum tick_verdict (*turn_over)(run_queue_t *queue, task_t *task);
    /* Locked. Called when the time queue->alarm has come; it is 0 now, and the hook may set it
     * again. Returns a queued task that may run now, or null. The host finds a CPU for the task
     * as if it had just been enqueued. Null hook: the policy never sets an alarm. */
    task_t *(*alarm)(run_queue_t *queue);
    /* Locked. An attribute of `task` was changed. Called before the enqueue() (ENQUEUE_MOVED) of
     * a task that was queued, or before the CPU of a running task picks again. Null: what
     * enqueue() sees is enough. */
    void (*changed)(run_queue_t *queue, task_t *task);
    /* Locked. `task`, which is blocked, is about to be queued in another queue, or leaves the
     * policy. Discards what stopped() kept of it in this queue. Null: nothing was kept. */
    void (*leave)(run_queue_t *queue, task_t *task);
    /* Locked (the queue of `owner`). The tasks that wait for `owner` changed, or its locks have
     * another ceiling. Returns true if a queued owner must be requeued, or if the CPU of a
     * running owner must pick again. Requeueing calls dequeue(), which still finds all but
     * `lent` as it was, then enqueue(ENQUEUE_MOVED). The host then calls the hook for the task
     * that `owner` itself waits for, if any. Null hook: the policy never sets follows_waits. */
    bool (*waiters_changed)(run_queue_t *queue, task_t *owner);
    /* Locked (the queue of the deciding CPU, which may hold none of the tasks). One of several
     * tasks that wait for the same lock or channel continues. They are visited in the order of
     * arrival. The first is chosen, with null as `chosen`, regardless of the result. Returns
     * true if `waiter`, which came later than `chosen`, replaces it. The hook may read
     * attributes and `lent` of the two. Null hook: the policy never sets orders_waiters. */
    bool (*overtakes)(run_queue_t *queue, const task_t *waiter, const task_t *chosen);
    /* Locked. Returns true if `task`, just enqueued, preempts `running` now. Null: never. Of
     * several running tasks of a shared queue, it preempts the task that the others would
     * preempt. */
    bool (*preempts)(run_queue_t *queue, const task_t *task, const task_t *running);
    /* No lock. Returns a CPU that the task may use. The task is forked or woken, or leaves its
     * CPU because it may no longer run there or by TICK_MOVE (ENQUEUE_MOVED). The task's state
     * may not exist yet. Null: place_fewest(). This hook and the next three are not called with
     * a shared queue. */
    uint32_t (*place)(const scheduler_t *scheduler, const task_t *task, enum enqueue_reason reason);
    /* No lock. Called at a tick of a CPU that runs a task, before balance(). Returns the CPU to
     * which `cpu` should give one of its queued tasks; NO_CPU: none. Null: push_to_idle(). */
    uint32_t (*push)(const scheduler_t *scheduler, uint32_t cpu);
    /* No lock. Called at a tick and before idling. Returns the CPU that `cpu` should take a task
     * from; NO_CPU: none. `idle`: the CPU has nothing to run. Null: balance_longest(). */
    uint32_t (*balance)(const scheduler_t *scheduler, uint32_t cpu, bool idle);
    /* Locked (the queue it is taken from). Takes out the task to be moved to `cpu`, of those
     * allowed there, or returns null; enqueue(ENQUEUE_MOVED) follows. If it returns null, it
     * changes nothing that affects later decisions. Null hook: pick(). */
    task_t *(*steal)(run_queue_t *queue, uint32_t cpu);
    /* No lock, when the policy is switched to. Returns true for one queue for all CPUs. Null:
     * no. */
    bool (*shared_queue)(const scheduler_t *scheduler);
    /* No lock. Returns the attribute that determines the tasks' shares of the CPU. Null: none. */
    enum share_attribute (*shares_by)(const scheduler_t *scheduler);
    /* No lock; for display. Returns the tickets that `task` draws with, if they differ from its
     * attribute. Null: they do not differ. */
    uint64_t (*tickets)(const scheduler_t *scheduler, const task_t *task);
    /* No lock; for display. Returns the serving level of `task`, which waits, at `now`. Null:
     * task->level, as it was queued. The hook gets only the task's fields that a trace contains,
     * without its state: PID, attributes, level and queued_since. */
    uint64_t (*level)(const scheduler_t *scheduler, const task_t *task, uint64_t now);
    /* No lock; for display. Returns the number of parts into which a draw divides a ticket; more
     * than 1 if the policy multiplies tickets. Null: 1. */
    uint64_t (*ticket_parts)(const scheduler_t *scheduler);
};

/* The state that the host provides, as the policy's own type. */
#define STATE_OF(object, type) ((type SHARED_MEMORY *)(object)->state)

/* The text's bytes starting at `at`, as a compile-time number. */
#define SAID_BYTE(text, at)                                                                        \
    ((uint64_t)(uint8_t)((at) < sizeof(text) ? (text)[(at) < sizeof(text) ? (at) : 0] : 0)         \
     << 8 * ((at) % 8))
#define SAID_WORD(text, at)                                                                        \
    (SAID_BYTE(text, at) | SAID_BYTE(text, (at) + 1) | SAID_BYTE(text, (at) + 2) |                 \
     SAID_BYTE(text, (at) + 3) | SAID_BYTE(text, (at) + 4) | SAID_BYTE(text, (at) + 5) |           \
     SAID_BYTE(text, (at) + 6) | SAID_BYTE(text, (at) + 7))

/*
 * Annotates the decision with text, from any locked hook, about a task or none (null). The text is
 * a literal of at most 48 characters, where {} and a second {} show the two numbers, of 64 bits and
 * of 32. It goes into the trace when the queue is unlocked; of several until then, at least the
 * last. The policy must set `speaks`: otherwise Linux ignores the text.
 */
#define SAY(queue, task, words, first, second)                                                     \
    do {                                                                                           \
        _Static_assert(sizeof(words) <= SAID_BYTES + 1, "a remark has 48 characters at most");     \
        (queue)->said.told = 1;                                                                    \
        (queue)->said.pid = said_of(task);                                                         \
        (queue)->said.text[0] = SAID_WORD(words, 0);                                               \
        (queue)->said.text[1] = SAID_WORD(words, 8);                                               \
        (queue)->said.text[2] = SAID_WORD(words, 16);                                              \
        (queue)->said.text[3] = SAID_WORD(words, 24);                                              \
        (queue)->said.text[4] = SAID_WORD(words, 32);                                              \
        (queue)->said.text[5] = SAID_WORD(words, 40);                                              \
        (queue)->said.value = (int64_t)(first);                                                    \
        (queue)->said.other = (int32_t)(second);                                                   \
    } while (0)

POLICY_FUNCTION int32_t said_of(const task_t *task)
{
    return task ? task->pid : 0;
}

/* Returns true if the task may run on the CPU. NO_CPU, the only one with the highest bit, means
 * any CPU. Do not compare the CPU here: a comparison reveals its number to the verifier. The
 * verifier then follows a caller's loop through all CPUs iteration by iteration. */
POLICY_FUNCTION bool task_may_run_on(const task_t *task, uint32_t cpu)
{
    return !task->cpus ||
           ((task->cpus->words[cpu / 64 % (POLICY_CPUS_MAX / 64)] >> cpu % 64 | cpu >> 31) & 1);
}

/* Returns true if a task may be queued here that may not run on `cpu`. False is certain. All
 * tasks in the queue of one CPU may run on that CPU. */
POLICY_FUNCTION bool queue_bars(const run_queue_t *queue, uint32_t cpu)
{
    return queue->bound && (cpu != queue->cpu || queue->scheduler->queues == 1);
}

/* Returns the nanoseconds that a running task of the queue has been on a CPU so far. Time that
 * the host lends the CPU elsewhere without notice does not count. */
POLICY_FUNCTION uint64_t run_time_now(const run_queue_t *queue, const task_t *running)
{
    bool counts = running->counted >= running->picked_since && queue->now > running->counted;
    return running->run_time + (counts ? queue->now - running->counted : 0);
}

#endif
