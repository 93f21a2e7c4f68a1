/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_POLICY_H
#define SCHEDLAB_POLICY_H

/*
 * The policy interface, version 2.
 *
 * A policy is one C file that defines one `struct policy`. The same source is
 * compiled into the kernel, into programs of the host, and into a Linux
 * sched_ext program; so a policy is freestanding C that
 *
 *   - keeps no variables of its own: what it must remember lives in the state
 *     that the host gives it for each scheduler, run queue and task;
 *   - calls nothing but the functions of policies/: time, randomness and locks
 *     are the host's, and reach it as data;
 *   - says what should happen by what it returns; the host makes it happen;
 *   - guards each loop with LOOP_GUARD, and begins what its turns count or choose
 *     with LOOP_START; never recurses, never divides by zero,
 *     has no more than five parameters to a function and 512 bytes of stack.
 *
 * Words: a task is what the host schedules (a process of the kernel, a thread
 * of Linux). A task is queued while it is runnable and not running: from its
 * enqueue() until pick(), dequeue() or steal() takes it out.
 *
 * docs/policy-interface.md explains all this with an example, and says in which
 * order a host does things that happen at the same time.
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
#ifndef SHARED_MEMORY /* else the address space of a BPF arena, which a compiler is to check */
#define SHARED_MEMORY
#endif
#define LOOP_GUARD        true
#define LOOP_START(value) (value)
#define POLICY_FUNCTION   static __attribute__((unused))
#define POLICY_DEFINITION const struct policy
#endif

/* What hooks have to do now and then, in a function of its own: so it does not slow them down the
 * rest of the time by the registers that it needs. */
#define POLICY_RARE_FUNCTION static __attribute__((noinline, unused))

/* BPF allows no more than eight calls in one another, and those of a host are among them. */
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

/* Groups of tasks: a tree, of which group 0 is the root. */
#define GROUPS_MAX           32
#define GROUP_WEIGHT_MAX     10000 /* as control groups of Linux have it: cpu.weight */
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
 * A task as policies see it. The policy owns `level`, `lent`, `next`, `previous` and
 * what `state` points to; the rest is the host's.
 *
 * Users may change the attributes (policies/support/attributes.h lists them) at
 * any time. A queued task is taken out by dequeue(), changed, and enqueued again
 * (ENQUEUE_MOVED); so what the policy read in enqueue() still holds in dequeue().
 * One that runs is changed, and its CPU picks again; one that is blocked is only
 * changed. Each time changed() is told. The set of CPUs on which a task may run is
 * such an attribute, too: a task that is queued, or runs, where it may not run any more
 * is queued where it may.
 */
struct task {
    int32_t pid;
    uint32_t slot;    /* the lowest number that no living or unreaped task had when it was forked */
    int32_t priority; /* PRIORITY_HIGHEST to PRIORITY_LOWEST */
    uint32_t tickets; /* 1 to TICKETS_MAX */
    uint32_t weight;  /* 1 to WEIGHT_MAX */
    int32_t nice;     /* NICE_FIRST to NICE_LAST, as on Unix */
    uint32_t cpu;     /* where it runs, is queued, or ran last */
    uint32_t group;   /* 0 to GROUPS_MAX - 1: scheduler->group */
    uint64_t run_time;     /* nanoseconds on a CPU, until `counted`: see run_time_now() */
    uint64_t counted;      /* when run_time was counted last; before picked_since: not now */
    uint64_t queued_since; /* when it was enqueued last */
    uint64_t picked_since; /* when it was picked last */
    uint64_t selections;   /* times it was picked */
    uint64_t level;        /* for people to see: an effective priority, a queue; 0 at first */
    uint64_t lent;         /* what tasks that wait for it lend to it; 0 at first */
    task_t *next;          /* links, for the queue that holds it */
    task_t *previous;
    void SHARED_MEMORY *state; /* POLICY_TASK_BYTES */
    uint64_t slice;            /* nanoseconds that it wants to run at a time */
    /* Of a task with deadlines: it needs `runtime` ns in each `period` of ns, within `deadline` of
     * the period's beginning (0: within the period). It is one while runtime and period are not 0,
     * and its children are none. Without a period, `runtime` is the ns of work that it has before
     * it, from when that was set; 0: it is not known. */
    uint64_t runtime;
    uint64_t deadline;
    uint64_t period;
    /* Who waits for whom, if scheduler->follows_waits: read in waiters_changed() alone. */
    task_t *waits_for;    /* the task that must act before this one, which is blocked; or null */
    task_t *first_waiter; /* of those that wait for this one, the last to come first; each has */
    task_t *next_waiter;  /* the next one here */
    task_t *previous_waiter;
    uint16_t ceiling;   /* 1 more than the highest ceiling of its locks; 0: none has one */
    uint16_t waker_cpu; /* where `waker` was */
    int32_t waker;      /* PID of the task that woke it last; 0: an interrupt did, or none yet */
    const struct cpu_set SHARED_MEMORY *cpus; /* for task_may_run_on(); null: all */
};

#define SAID_BYTES 48

/* A remark in words; SAY() makes it. */
struct said {
    uint32_t told; /* 1: there is one, which the host has not taken yet */
    int32_t pid;   /* of the task that it is about; 0: none */
    uint64_t text[SAID_BYTES / 8];
    int64_t value; /* for the first {} of the text */
    int32_t other; /* for the second */
};

/* One CPU's run queue, or the one run queue of all CPUs (see shared_queue). */
struct run_queue {
    scheduler_t *scheduler;
    uint64_t now;     /* nanoseconds; the time at which the hook is called */
    uint32_t cpu;     /* whose queue this is; 0 for a shared one */
    uint32_t queued;  /* tasks queued here; counted after the hook that queues or takes out */
    uint32_t running; /* tasks that run from here; one that is picked or stopped is not counted */
    task_t *current;  /* the one that runs, if the queue is of one CPU and the policy knows it; null
                         in its own stopped() and in pick() */
    uint64_t remark;  /* pick() may say why here (a ticket, a level); it goes into the trace */
    /* What the policy asks for, by times as in `now`; 0: nothing. */
    uint64_t turn_end; /* pick(), tick() and turn_over() say: when turn_over() is to be called */
    uint64_t alarm;    /* every locked hook may say: when alarm() is to be called; a time that has
                          passed is now */
    uint32_t held;     /* the policy's count of queued tasks that may not run now: see pick() */
    struct said said;  /* SAY() in any locked hook */
    bool bound;        /* a task that may not run on every CPU has been queued here */
    void SHARED_MEMORY *state; /* POLICY_QUEUE_BYTES */
};

/*
 * A group of tasks and of other groups. Users may change it at any time: no hook is called, and a
 * value that a hook reads may be a moment old. State of a group is the policy's: an array of
 * GROUPS_MAX in a queue's state, or in the scheduler's.
 */
struct share_group {
    uint32_t parent; /* a group with a lower number; of the root: 0 */
    uint32_t weight; /* beside its siblings: 1 to GROUP_WEIGHT_MAX */
    uint64_t
        quota; /* nanoseconds on all CPUs that its tasks may have in each period; 0: no limit */
    uint64_t period; /* nanoseconds; it begins whenever the time is a multiple of it */
};

/*
 * The machine's shape: which CPUs share a core, a cache and a node, how far nodes are from each
 * other, and how fast each CPU is. policies/machine_shape.h reads it. A core lies in one cache, a
 * cache in one node. Only `capacity_now` ever changes, and may be a moment old.
 */
#define CAPACITY_FULL    1024 /* of the machine's fastest CPU, as Linux has it */
#define SHAPE_KINDS_MAX  16
#define SHAPE_LEVELS_MAX 16
#define SHAPE_NODES_MAX  64
#define DISTANCE_LOCAL   10 /* within a node, as ACPI's SLIT has it */

struct cpu_place {
    uint16_t core;         /* CPUs of one core are its hardware threads */
    uint16_t cache;        /* the last one that CPUs share */
    uint16_t node;         /* of memory: below `nodes` */
    uint16_t kind;         /* below `kinds` */
    uint16_t sibling;      /* the next CPU of its core, in a ring: itself if it has none */
    uint16_t capacity_now; /* at the level that it has now */
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
    uint64_t overhead_ns; /* of a task's run_time, what the host itself takes at a tick or after a
                           * pick, at most as a rule; 0: nothing */
    uint64_t seed;        /* of the policy's random generator, if it has one */
    bool ending;          /* another policy takes over: pick() gives the tasks that are held, too */
    bool follows_waits;   /* scheduler_init() says so: waiters_changed() is to be called */
    bool orders_waiters;  /* scheduler_init() says so: overtakes() is to be called */
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
    ENQUEUE_PREEMPTED, /* was running until another task took its CPU, or its attribute changed */
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
    TICK_PREEMPT, /* the task's turn is over */
    TICK_KILL,    /* end the task */
    TICK_MOVE,    /* its turn is over, and place() says where it goes on */
};

/* The attribute that decides how large a task's share of the CPU is (abi/trace_format.h has the
 * same numbers). */
enum share_attribute {
    SHARES_EQUAL = 0, /* none does */
    SHARES_BY_TICKETS = 2,
    SHARES_BY_WEIGHT = 3,
    SHARES_BY_NICE = 4,         /* the weights of nice levels: nice_weights.h */
    SHARES_BY_GROUPS = 9,       /* those of groups and, within them, of nice levels */
    SHARES_BY_CURRENCIES = 100, /* of groups and, within them, tickets: no attribute's own number */
};

/* What a policy leaves in queue->remark when it picks. */
enum remark_kind {
    REMARK_NONE,   /* nothing */
    REMARK_LEVEL,  /* the level at which the task is served */
    REMARK_TICKET, /* the ticket that was drawn: see ticket_parts() */
    REMARK_TIME,   /* nanoseconds */
};

/* What task->level says. */
enum level_order {
    LEVELS_NONE,         /* nothing: the policy has no levels */
    LEVELS_LOWEST_FIRST, /* level 0 is served before all others */
    LEVELS_HIGHEST_FIRST,
};

/* What `priority` decides: is the policy the queue of which theory knows the mean times? */
enum priority_rule {
    PRIORITIES_NONE,    /* it is not */
    PRIORITIES_WAIT,    /* the lowest number is next, when the task that runs ends or blocks */
    PRIORITIES_PREEMPT, /* the lowest number takes the CPU */
};

/* How what enqueue() and pick() cost grows with the number of tasks, as `./schedlab dev bench`
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

/* Commands of sched_status that mean something else under one preset. */
struct preset_commands {
    const char *preset;
    const char *const *numbered; /* what the numbers from 0 on choose; ends with a null. Any other
                                    number is obeyed by doing nothing. */
    uint32_t weight;             /* what a weight beyond the range is taken for */
};

/*
 * Hooks marked "locked" are called with the lock of `queue` held, and may touch
 * all of its state and of its tasks. The others hold no lock: they may read any
 * queue's `now`, `queued` and `running`, and numbers in its state, and must be
 * content with values that are a moment old. What scheduler_init() leaves in the
 * scheduler's state is read by all; a hook that changes it later does so by atomic
 * operations (__sync_fetch_and_add()). A hook that is null does nothing; what
 * that means is said with each.
 *
 * Switching to a policy: all state is zero, tunables have their values, and the
 * host calls scheduler_init(), shared_queue(), and queue_init() for each queue.
 * A task that is alive already becomes known to the policy when it is queued
 * next: task_init() without a parent, then enqueue(ENQUEUE_ADOPTED). For those
 * that are queued now this is at once, in the order in which the old policy would
 * have run them; those that run leave their CPUs as soon as they can. Before that
 * no hook except place() is called for a task.
 *
 * Tunables do not change under a policy: to set one is to switch to the policy anew,
 * in the same way.
 */
struct policy {
    const char *name;
    const char *meaning; /* one line */
    const char *source;  /* author and year of the algorithm */
    /* What a person needs to know to understand what is shown of it: a sentence each. */
    const char *order;  /* in which order the tasks of a queue are served */
    const char *levels; /* what its levels are; null: it has none */
    const char *remark; /* why a task was picked, with {} where the remark goes; null: not said */
    const char *boost;  /* the tunable: ticks from one lift of all to the next; null: none */
    /* The attributes of tasks that decide something, by the names that workload files have for
     * them in the simulator, with spaces between them; "nice:linux=1": while that tunable has that
     * value. Null: the policy does not say. */
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
    const struct preset_commands *commands; /* null: those of all */
    bool speaks;                            /* it makes remarks by SAY() */
    bool by_groups; /* it goes by scheduler->group: a host that has groups of its own tells it of
                       those, too */
    /* A task that may run waits for so many rounds at most, and then for the next boost if there is
     * one. In a round it has a turn of time_slice(), and each other task one for each time that its
     * share holds this task's, or one. 0: a task may starve. Tasks that are held do not count. */
    uint32_t rounds;
    /* Bytes of a task's state that the policy uses: a host may give it no more. 0: all of
     * POLICY_TASK_BYTES. */
    uint32_t task_bytes;

    /* Required, locked. */
    void (*enqueue)(run_queue_t *queue, task_t *task, enum enqueue_reason reason);
    /* Required, locked. Takes a queued task out, which is not run. */
    void (*dequeue)(run_queue_t *queue, task_t *task);
    /* Required, locked. Takes out the task to run next on `cpu`, of those that may run there; null
     * only if none of them is queued, or if all are held: then queue->alarm says when that may end.
     * For a CPU that gets nothing, it changes nothing that decides later. */
    task_t *(*pick)(run_queue_t *queue, uint32_t cpu);

    /* Required, locked. Called at each tick of a CPU that runs `task`. */
    enum tick_verdict (*tick)(run_queue_t *queue, task_t *task);
    /* Required, no lock. Ticks that `task` may run when picked; UINT64_MAX: without limit. */
    uint64_t (*time_slice)(const scheduler_t *scheduler, const task_t *task);

    /* No lock, before any task; the first one before there are queues. Null: state stays zero. */
    void (*scheduler_init)(scheduler_t *scheduler);
    void (*queue_init)(run_queue_t *queue);
    /* With or without the lock, before the task's first enqueue(). It is forked by `parent`, which
     * runs and calls this itself, or (null) adopted. Null: its state stays zero. */
    void (*task_init)(scheduler_t *scheduler, task_t *task, const task_t *parent);
    /* With or without the lock. The task has ended. */
    void (*task_exit)(scheduler_t *scheduler, task_t *task);
    /* Locked. A picked task leaves its CPU. */
    void (*stopped)(run_queue_t *queue, task_t *task, enum stop_reason reason);
    /* Locked. `task` still runs at the time, or after it, that queue->turn_end said last on its
     * CPU. The verdict is as tick()'s; the hook may set queue->turn_end anew. Null hook: no policy
     * without it sets turn_end. */
    enum tick_verdict (*turn_over)(run_queue_t *queue, task_t *task);
    /* Locked. The time that queue->alarm said has come; it is 0 now, and the hook may set it anew.
     * Returns a queued task that may run from now on, for which the host looks for a CPU as if it
     * had just been enqueued, or null if there is none. Null hook: no policy without it sets an
     * alarm. */
    task_t *(*alarm)(run_queue_t *queue);
    /* Locked. An attribute of `task` was changed: before the enqueue() (ENQUEUE_MOVED) of one that
     * was queued, before the CPU of one that runs picks again. Null: what enqueue() sees is
     * enough. */
    void (*changed)(run_queue_t *queue, task_t *task);
    /* Locked. `task`, which is blocked, is about to be queued in another queue, or leaves the
     * policy: what stopped() kept of it in this queue goes. Null: nothing was kept. */
    void (*leave)(run_queue_t *queue, task_t *task);
    /* Locked (the queue of `owner`). Other tasks wait for `owner` than before, or one of them has
     * changed, or it has locks of another ceiling. Returns true if a queued owner is to be queued
     * anew (dequeue(), which still finds all but `lent` as it was, then enqueue(ENQUEUE_MOVED)), or
     * if the CPU of one that runs is to pick again. Then the same is told of the task for which
     * `owner` waits itself, if it does. Null hook: no policy without it sets follows_waits. */
    bool (*waiters_changed)(run_queue_t *queue, task_t *owner);
    /* Locked (a queue of none of them: that of the CPU where it is decided). Of several tasks that
     * wait for the same lock or channel one goes on. They are gone through in the order in which
     * they came, and the first is chosen, with null as `chosen`, whatever the hook returns. Should
     * `waiter`, which came later than `chosen`, go on in its place? The hook may read attributes
     * and `lent` of the two. Null hook: no policy without it sets orders_waiters. */
    bool (*overtakes)(run_queue_t *queue, const task_t *waiter, const task_t *chosen);
    /* Locked. Should `task`, just enqueued, take the CPU of `running` now? Null: never. Of
     * several tasks that run from a shared queue, the one that the others would preempt gives
     * way. */
    bool (*preempts)(run_queue_t *queue, const task_t *task, const task_t *running);
    /* No lock. The CPU for a task that is forked or woken, or that leaves its CPU because it may
     * not run there any more or by TICK_MOVE (ENQUEUE_MOVED): one on which it may run. The task's
     * state may not be there yet. Null: place_fewest(). This hook and the next three are not called
     * with a shared queue. */
    uint32_t (*place)(const scheduler_t *scheduler, const task_t *task, enum enqueue_reason reason);
    /* No lock. At a tick of a CPU that runs a task, before balance(): to which CPU should `cpu`
     * give one of its queued tasks? NO_CPU: none. Null: push_to_idle(). */
    uint32_t (*push)(const scheduler_t *scheduler, uint32_t cpu);
    /* No lock. At a tick and before idling: from which CPU should `cpu` take a task? NO_CPU: none.
     * `idle`: the CPU has nothing to run. Null: balance_longest(). */
    uint32_t (*balance)(const scheduler_t *scheduler, uint32_t cpu, bool idle);
    /* Locked (the queue it is taken from). Takes out the task to be moved to `cpu`, of those that
     * may run there; enqueue(ENQUEUE_MOVED) follows. Null: none. If no task may run there, it
     * changes nothing that decides later. Null hook: pick(). */
    task_t *(*steal)(run_queue_t *queue, uint32_t cpu);
    /* No lock, when the policy is switched to. One queue for all CPUs? Null: no. */
    bool (*shared_queue)(const scheduler_t *scheduler);
    /* No lock. Which attribute decides the tasks' shares of the CPU? Null: none. */
    enum share_attribute (*shares_by)(const scheduler_t *scheduler);
    /* No lock; for people to see. The tickets that `task` draws with, if they are not its
     * attribute. Null: they are. */
    uint64_t (*tickets)(const scheduler_t *scheduler, const task_t *task);
    /* No lock; for people to see. The level at which `task`, which waits, is served at `now`. Null:
     * task->level, as it was queued. This hook knows of the task what a trace tells of it, without
     * its state: PID, attributes, level and queued_since. */
    uint64_t (*level)(const scheduler_t *scheduler, const task_t *task, uint64_t now);
    /* No lock; for people to see. Into how many parts a draw divides a ticket; more than 1 if the
     * policy multiplies tickets. Null: 1. */
    uint64_t (*ticket_parts)(const scheduler_t *scheduler);
};

/* The state that the host gave, as the policy's own type. */
#define STATE_OF(object, type) ((type SHARED_MEMORY *)(object)->state)

/* The bytes of a text from `at` on, as a number that the compiler knows. */
#define SAID_BYTE(text, at)                                                                        \
    ((uint64_t)(uint8_t)((at) < sizeof(text) ? (text)[(at) < sizeof(text) ? (at) : 0] : 0)         \
     << 8 * ((at) % 8))
#define SAID_WORD(text, at)                                                                        \
    (SAID_BYTE(text, at) | SAID_BYTE(text, (at) + 1) | SAID_BYTE(text, (at) + 2) |                 \
     SAID_BYTE(text, (at) + 3) | SAID_BYTE(text, (at) + 4) | SAID_BYTE(text, (at) + 5) |           \
     SAID_BYTE(text, (at) + 6) | SAID_BYTE(text, (at) + 7))

/*
 * A remark in words, from any locked hook, about a task of it or none (null): a literal of at most
 * 48 characters, in which {} and a second {} stand for the two numbers, of 64 bits and of 32. It
 * goes into the trace when the queue is unlocked; of several until then, the last one at least. The
 * policy has `speaks` set: on Linux it is not heard otherwise.
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

/* May the task run on the CPU? NO_CPU, the only one with the highest bit, stands for any. Do not
 * compare the CPU here: a comparison tells the verifier its number, and the verifier then follows
 * a caller's loop through all CPUs iteration by iteration. */
POLICY_FUNCTION bool task_may_run_on(const task_t *task, uint32_t cpu)
{
    return !task->cpus ||
           ((task->cpus->words[cpu / 64 % (POLICY_CPUS_MAX / 64)] >> cpu % 64 | cpu >> 31) & 1);
}

/* May a task be queued here that may not run on `cpu`? False is certain. All that are queued in the
 * queue of one CPU may run on that. */
POLICY_FUNCTION bool queue_bars(const run_queue_t *queue, uint32_t cpu)
{
    return queue->bound && (cpu != queue->cpu || queue->scheduler->queues == 1);
}

/* Returns the nanoseconds that a task which runs from the queue has been on a CPU until now. A host
 * may give its CPU away for a moment without a word to the policy: that does not count. */
POLICY_FUNCTION uint64_t run_time_now(const run_queue_t *queue, const task_t *running)
{
    bool counts = running->counted >= running->picked_since && queue->now > running->counted;
    return running->run_time + (counts ? queue->now - running->counted : 0);
}

#endif
