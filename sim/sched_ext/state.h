/* SPDX-License-Identifier: MIT */
#ifndef SIM_SCHED_EXT_STATE_H
#define SIM_SCHED_EXT_STATE_H

#include <stdio.h>

#include "abi/trace_format.h"
#include "policies/policy.h"
#include "sim/arena.h"
#include "sim/sched_ext/guest.h"
#include "sim/sched_ext/image.h"
#include "sim/sched_ext/kernel_types.h"
#include "sim/simulator.h"

/*
 * The state of one scheduler of sched_ext: its programs and their memory, and the kernel's part of
 * sched_ext. Private to sim/sched_ext/. Tasks, CPUs, dispatch queues and maps refer to each other
 * by number. Names of functions follow the kernel's where the kernel has the function.
 */

#define NONE UINT32_MAX

enum scheduler_op {
#define SCHEDULER_OP(name, number, first, last) OP_##name = number,
    SCHEDULER_OPS(SCHEDULER_OP)
#undef SCHEDULER_OP
        OP_COUNT
};

enum map_type {
#define MAP_TYPE(name, number) MAP_##name = number,
    MAP_TYPES(MAP_TYPE)
#undef MAP_TYPE
};

/* Offsets in REGION_CONTEXT. */
enum {
    CONTEXT_OPS = 0, /* arguments of operations: CONTEXT_OP_BYTES for each nested operation */
    CONTEXT_OP_BYTES = 64,
    CONTEXT_OPS_NESTED = 16,
    CONTEXT_ARGUMENTS = 1024, /* structures that arguments point to */
    CONTEXT_KEYS = 2048,      /* keys for callbacks: 8 bytes for each frame */
};

/* A dispatch queue (DSQ). Queues below `cpus` are local; the next one is global. */
struct dispatch_queue {
    uint64_t id;
    uint32_t first; /* slot */
    uint32_t last;
    uint32_t count;
    uint32_t chain; /* the next queue with the same hash, or the next free queue */
    bool is_used;
    bool by_vtime; /* its tasks are in the order of their virtual times */
};

#define DISPATCH_QUEUES_MAX 16384 /* created by the scheduler */
#define QUEUE_HASHES        1024

struct ext_task {
    uint32_t queue; /* the DSQ that holds the task, or NONE */
    uint32_t next;  /* in this queue */
    uint32_t previous;
    uint32_t group;
    uint64_t sequence;                /* number of times that the task was enqueued */
    uint64_t enqueued_at;             /* number of the insertion into its queue */
    uint64_t runnable_since;          /* when it last became runnable, or stopped running */
    uint64_t counted;                 /* run time (ns) already taken from the slice */
    bool exists;                      /* init_task() was called */
    bool is_queued;                   /* runnable; SCX_TASK_QUEUED */
    bool in_custody;                  /* given to enqueue(), and not dispatched yet */
    enum dispatch_callback placed_by; /* who chose its present place */
};

enum { KICKED = 1, KICKED_IDLE = 2, KICKED_PREEMPT = 4 };

struct ext_cpu {
    uint32_t kicks;    /* not delivered yet */
    uint32_t rotor;    /* the CPU that was last chosen by turns */
    bool resched;      /* must pick again for another reason than SCX_KICK_IDLE */
    bool in_balance;   /* between tasks: looks for the next one */
    bool keeps;        /* the running task continues */
    bool is_released;  /* cpu_release() was called */
    bool is_offline;   /* by hotplug; CPU 0 never is */
    uint64_t picks_at; /* time of the last picks */
    uint32_t picks;    /* number of picks at this time */
    uint64_t owed;     /* cost of programs on this CPU, not charged yet: ns / 1000 */
};

/* An insertion that dispatch() requested; it happens when dispatch() returns. */
struct dispatch_request {
    uint32_t slot;
    uint64_t queue_id;
    uint64_t flags;
    uint64_t sequence;
};

#define DISPATCH_BATCH_MAX 4096

struct ext_timer {
    uint64_t address; /* of the struct bpf_timer */
    uint64_t when;    /* NEVER: not started */
    uint32_t cpu;
};

#define BPF_TIMERS_MAX 4096

struct ext_map {
    const struct image_map *image;
    uint32_t number;
    uint32_t capacity;
    uint32_t stride;      /* bytes from a value to the next */
    uint32_t key_stride;  /* 0: the key is an index */
    uint64_t keys_at;     /* offset of the keys in the map's region */
    uint64_t region_size; /* bytes */
    uint32_t count;       /* used elements */
    uint32_t first;       /* of a queue */
    uint32_t free;        /* first free element of a hash */
    uint32_t buckets_mask;
    uint32_t *buckets; /* first element with a hash */
    uint32_t *chain;   /* next element with the same hash, or next free element */
    uint8_t *used;
    uint64_t *used_at; /* of an LRU hash: number of the last use */
    uint32_t *inner;   /* of a map of maps: map number + 1 */
};

#define HEAP_BYTES   (64u << 20)
#define HEAP_UNIT    16u
#define HEAP_CLASSES 512u /* sizes up to 8 KiB are reused */

struct heap {
    uint32_t taken;              /* units */
    uint32_t free[HEAP_CLASSES]; /* first free block by size; 0: none */
    uint32_t *sizes;      /* by unit: units of the block that begins here; 0: none is allocated */
    uint32_t *references; /* by unit */
    uint32_t *chain;      /* by unit: the next free block */
};

/* The pages of the arena that programs use. */
struct arena_pages {
    uint64_t count;
    uint64_t next; /* where to look for free pages */
    uint8_t *used; /* by page */
};

/* Where the kernel's structures are in REGION_KERNEL. */
struct kernel_layout {
    uint64_t possible_mask, online_mask, idle_mask, idle_smt_mask, empty_mask;
    uint64_t idle_task, memory_map, credentials, signals, cpufreq;
    uint64_t groups; /* struct group_structures each */
    uint64_t exit_text, exit_reason;
    uint64_t tasks; /* struct task_struct each */
    uint64_t bytes;
};

struct group_structures {
    struct cgroup cgroup;
    struct kernfs_node node;
    struct task_group task_group;
    struct css_set css_set;
    char name[32];
};

struct ext_group {
    bool exists; /* cgroup_init() was called */
    uint32_t parent;
};

struct simulator;

struct sched_ext {
    struct guest guest; /* must be first */
    struct simulator *simulator;
    struct arena arena;
    const struct image_header *image; /* the file */
    uint32_t op[OP_COUNT];            /* first instruction, or NONE */
    uint64_t ops_flags;
    uint32_t batch; /* most requests of one dispatch() */
    uint64_t watchdog_ns;
    uint64_t watchdog_next;
    char name[64];

    uint32_t cpu_count;
    uint32_t mask_words;
    uint32_t task_limit;
    bool has_smt;
    uint32_t this_cpu;   /* where programs run now */
    uint32_t acting_cpu; /* the same, or OUTSIDE */
    uint32_t nested;     /* operations in progress */
    enum scheduler_op running_op;
    bool is_begun; /* init() has succeeded */
    bool bypasses; /* the scheduler is not asked any more */
    bool is_ended; /* exit() was called */
    enum scx_exit_kind exit_kind;
    int64_t exit_code;
    char exit_text[SCX_EXIT_MSG_LEN];
    uint32_t
        direct_task; /* slot of the task that select_cpu() or enqueue() may dispatch, or NONE */
    uint32_t dispatching; /* the CPU whose dispatch() runs, or NONE */
    uint32_t dispatched;  /* tasks that this dispatch() has dispatched */
    uint32_t sliceless;   /* the first operation that dispatched a task without a slice, + 1; 0 */
    uint32_t request_count;
    uint64_t random_state;
    uint64_t lru_clock;
    uint64_t calls[OP_COUNT];
    FILE *callbacks; /* to be written, or null */

    struct kernel_layout kernel;
    struct ext_task *tasks;
    struct ext_cpu *cpus;
    struct dispatch_queue *queues;
    uint32_t queue_hash[QUEUE_HASHES];
    uint32_t queue_free;  /* first free queue */
    uint32_t queue_count; /* queues ever used */
    uint64_t enqueued;    /* insertions into queues so far */
    struct dispatch_request *requests;
    struct ext_timer *timers;
    uint32_t timer_count;
    struct ext_map *maps;
    uint32_t map_count;
    struct heap heap;
    struct arena_pages arena_pages;
    struct ext_group groups[GROUPS_MAX];
};

static inline struct sched_ext *ext_of(struct guest *guest)
{
    return (struct sched_ext *)(void *)guest;
}

/* ---- image_file.c: reads images and lays out their memory ---- */

const char *image_string(const struct sched_ext *ext, image_text text);
const void *image_table(const struct sched_ext *ext, enum image_table_number table,
                        uint32_t *count);
/* Returns the program that contains an instruction, or null. */
const struct image_program *image_program_at(const struct sched_ext *ext, uint32_t instruction);
const struct image_type *image_type_of(const struct sched_ext *ext, uint64_t id);

/* ---- heap.c ---- */

/* Returns the address of zeroed memory, or 0 if the heap is full. */
uint64_t heap_take(struct sched_ext *ext, uint32_t bytes);
/* Returns false if no block begins at the address. */
bool heap_give_back(struct sched_ext *ext, uint64_t address);
/* Returns the number of references to a block, or null if no block begins at the address. */
uint32_t *heap_references(struct sched_ext *ext, uint64_t address);

/* ---- operations.c: calls of the scheduler, and its errors ---- */

static inline bool has_op(const struct sched_ext *ext, enum scheduler_op op)
{
    return ext->op[op] != NONE;
}

uint64_t call_op(struct sched_ext *ext, enum scheduler_op op, uint64_t a, uint64_t b, uint64_t c);
/* Calls a program from outside, and notes its cost for this CPU. Returns its result. */
uint64_t call_from_outside(struct sched_ext *ext, uint32_t entry, const uint64_t arguments[5]);
/* Ends the scheduler with an error, as the kernel does. Keeps the first error. */
__attribute__((format(printf, 2, 3), cold)) void scx_error(struct sched_ext *ext,
                                                           const char *format, ...);
void scx_exit(struct sched_ext *ext, enum scx_exit_kind kind, int64_t code, const char *text);
/* Reports a trap of a program that was not called as an operation, such as a timer's callback. */
void note_trap(struct sched_ext *ext);
/* Records what the scheduler did that the kernel tolerates, but that is often a mistake. */
void record_oddities(const struct sched_ext *ext);
/* Fails the run with the scheduler's error. */
void report_end(struct sched_ext *ext);
/* Writes a text in the format of printf, whose values are in `values`. Replaces characters that
 * terminals interpret. */
void format_text(const struct sched_ext *ext, char *text, size_t bytes, const char *format,
                 size_t format_bytes, const unsigned char *values, uint32_t count);
/* Does this for a format and values at guest addresses. `value_bytes`: 8 for each value. */
void format_guest_text(const struct sched_ext *ext, char *text, size_t bytes, uint64_t format,
                       uint64_t values, uint32_t value_bytes);

/* ---- tasks.c: the kernel's structures of tasks, CPUs and groups ---- */

static inline uint64_t task_address(const struct sched_ext *ext, uint32_t slot)
{
    return guest_address(REGION_KERNEL, ext->kernel.tasks + slot * sizeof(struct task_struct));
}

static inline void *kernel_memory(const struct sched_ext *ext, uint64_t offset)
{
    return ext->guest.regions[REGION_KERNEL].base + offset;
}

static inline struct task_struct *task_struct_of(const struct sched_ext *ext, uint32_t slot)
{
    return kernel_memory(ext, ext->kernel.tasks + slot * sizeof(struct task_struct));
}

/* Returns the slot of an existing task, or NONE. */
uint32_t task_at(const struct sched_ext *ext, uint64_t address);
/* The same; traps without a task. */
uint32_t require_task(struct sched_ext *ext, uint64_t address);
uint32_t task_by_pid(const struct sched_ext *ext, int32_t pid);
struct rq *rq_of(const struct sched_ext *ext, uint32_t cpu);
uint64_t rq_address(uint32_t cpu);
void begin_kernel(struct sched_ext *ext);
void fill_task(struct sched_ext *ext, uint32_t slot);
void fill_task_attributes(struct sched_ext *ext, uint32_t slot);
/* Sets the task's parent and group. */
void fill_task_relations(struct sched_ext *ext, uint32_t slot);
uint32_t cpu_of_task(const struct sched_ext *ext, uint32_t slot);
/* Returns true also for a task that is just leaving its CPU, as in the kernel. */
bool task_runs(const struct sched_ext *ext, uint32_t slot);
uint32_t running_task(const struct sched_ext *ext, uint32_t cpu);
/* Returns true if the CPU is in the task's set of CPUs. */
bool task_has_cpu(const struct sched_ext *ext, uint32_t slot, uint32_t cpu);
/* The same, and the CPU is online. */
bool task_allows(const struct sched_ext *ext, uint32_t slot, uint32_t cpu);

static inline bool cpu_is_online(const struct sched_ext *ext, uint32_t cpu)
{
    return !ext->cpus[cpu].is_offline;
}

static inline uint64_t *online_mask(const struct sched_ext *ext)
{
    return kernel_memory(ext, ext->kernel.online_mask);
}

/* ---- groups.c ---- */

uint64_t group_address(const struct sched_ext *ext, uint32_t group);
/* Returns the number of the group at an address, or NONE. */
uint32_t group_at(const struct sched_ext *ext, uint64_t address);
void begin_groups(struct sched_ext *ext);
void end_groups(struct sched_ext *ext);
/* Creates the group and the groups above it if they do not exist. Returns the group: the root if
 * the number was never set. */
uint32_t enter_group(struct sched_ext *ext, uint32_t group);
void group_changed(struct sched_ext *ext, uint32_t group, uint32_t field);

/* ---- dispatch_queues.c ---- */

static inline uint32_t global_queue(const struct sched_ext *ext)
{
    return ext->cpu_count;
}

void begin_queues(struct sched_ext *ext);
/* Returns the callback that runs. */
enum dispatch_callback present_callback(const struct sched_ext *ext);
/* The same for a function that a program calls, which may be a timer's. */
enum dispatch_callback calling_callback(const struct sched_ext *ext);
/* Returns the queue with an ID, or NONE. `cpu`: the CPU of SCX_DSQ_LOCAL. */
uint32_t find_queue(const struct sched_ext *ext, uint64_t id, uint32_t cpu);
/* Returns the queue for a dispatch of the task; the global queue after an error. */
uint32_t find_queue_for_dispatch(struct sched_ext *ext, uint64_t id, uint32_t slot, uint32_t cpu);
int32_t create_queue(struct sched_ext *ext, uint64_t id);
void destroy_queue(struct sched_ext *ext, uint64_t id);
void dispatch_enqueue(struct sched_ext *ext, uint32_t queue, uint32_t slot, uint64_t flags);
/* Takes a task out of its queue, if it is in one. */
void dispatch_dequeue(struct sched_ext *ext, uint32_t slot);
void dispatch_to_queue(struct sched_ext *ext, uint32_t queue, uint32_t slot, uint64_t flags);
/* Dispatches a task that select_cpu() or enqueue() has dispatched. */
void direct_dispatch(struct sched_ext *ext, uint32_t slot, uint64_t flags);
/* Moves the first task that may run on the CPU to its local queue. */
bool consume_queue(struct sched_ext *ext, uint32_t cpu, uint32_t queue);
void request_dispatch(struct sched_ext *ext, uint32_t slot, uint64_t queue_id, uint64_t slice,
                      uint64_t flags);
/* Performs the requests of dispatch(). */
void flush_requests(struct sched_ext *ext);

/* ---- idle.c ---- */

bool has_builtin_idle(const struct sched_ext *ext);
void update_idle(struct sched_ext *ext, uint32_t cpu, bool idle, bool is_transition);
bool test_and_clear_idle(struct sched_ext *ext, uint32_t cpu);
/* Return a CPU that was idle, which is claimed, or -EBUSY. Masks are addresses; 0: all CPUs. */
int32_t pick_idle_cpu(struct sched_ext *ext, uint64_t allowed, uint64_t flags);
int32_t select_cpu_default(struct sched_ext *ext, uint32_t slot, uint32_t previous,
                           uint64_t wake_flags, uint64_t allowed, uint64_t flags);

/* ---- cpu_masks.c ---- */

/* Returns the words of a mask, or null after a trap. */
const uint64_t *mask_at(struct sched_ext *ext, uint64_t address);
/* The same for a mask of the program, which it may change. */
uint64_t *program_mask_at(struct sched_ext *ext, uint64_t address);
bool mask_has(const struct sched_ext *ext, const uint64_t *mask, uint32_t cpu);
void mask_set(const struct sched_ext *ext, uint64_t *mask, uint32_t cpu, bool value);
/* Returns the first common CPU at or after `from`, or `cpu_count`. `other` may be null. */
uint32_t mask_next(const struct sched_ext *ext, const uint64_t *mask, const uint64_t *other,
                   uint32_t from);
/* Returns a common CPU by turns, or `cpu_count`. */
uint32_t mask_distribute(struct sched_ext *ext, const uint64_t *mask, const uint64_t *other);

/* ---- maps.c ---- */

bool measure_map(struct sched_ext *ext, struct ext_map *map, struct simulator_error *error);
void lay_out_map(struct sched_ext *ext, struct ext_map *map, struct arena *arena);
struct ext_map *map_at(struct sched_ext *ext, uint64_t address);
/* Returns the address of an element's value on a CPU. */
uint64_t map_value(const struct ext_map *map, uint32_t index, uint32_t cpu);
/* Finds the element that contains an address. Returns false if there is none. */
bool map_element(const struct ext_map *map, uint64_t address, uint32_t *index, uint64_t *value);
/* Returns the address of an element's key. */
uint64_t map_key(struct sched_ext *ext, const struct ext_map *map, uint32_t index);
void forget_storage(struct sched_ext *ext, enum map_type type, uint32_t owner);

/* Stores an entry that user space writes: a key and its value (in a per-CPU map, one value for each
 * CPU). Returns false if that is impossible. */
bool update_map(struct sched_ext *ext, uint32_t number, const unsigned char *data, uint32_t bytes);

/* ---- start.c ---- */

void begin_scheduler(struct sched_ext *ext, struct simulator *simulator);
/* Calls exit() after the end of all tasks. */
void call_exit(struct sched_ext *ext);

/* ---- timers.c ---- */

/* Returns when the CPU's next timer expires, or UINT64_MAX. */
uint64_t next_timer(const struct sched_ext *ext, uint32_t cpu);
/* Moves a CPU's timers to another CPU. */
void move_timers(struct sched_ext *ext, uint32_t from, uint32_t to);
/* Calls the callbacks of the CPU's timers that have expired. */
void expire_timers(struct sched_ext *ext, uint32_t cpu);

/* ---- engine.c: what the functions above need of the simulator ---- */

uint64_t ext_now(const struct sched_ext *ext);
/* Makes a CPU pick again. */
void ext_resched(struct sched_ext *ext, uint32_t cpu);
void ext_kick(struct sched_ext *ext, uint32_t cpu, uint64_t flags);
void ext_change_cpu(struct sched_ext *ext, uint32_t slot, uint32_t cpu);
void ext_timer_changed(struct sched_ext *ext, uint32_t cpu);
/* Records the task's place: the ID of a dispatch queue. */
void ext_record_place(const struct sched_ext *ext, uint32_t slot, uint64_t queue_id);
/* Enqueues the tasks of a local queue again. Returns their number. */
uint32_t ext_reenqueue_local(struct sched_ext *ext, uint32_t cpu);

/* ---- tables of functions ---- */

extern host_function *const ext_helpers[GUEST_HELPERS_MAX];
extern host_function *const ext_functions[KERNEL_FUNCTION_NUMBERS];

/* Error numbers of Linux, as registers. */
enum {
    LINUX_ENOENT = 2,
    LINUX_E2BIG = 7,
    LINUX_ENOMEM = 12,
    LINUX_EFAULT = 14,
    LINUX_EBUSY = 16,
    LINUX_EEXIST = 17,
    LINUX_EINVAL = 22,
    LINUX_ENOSPC = 28,
    LINUX_EOPNOTSUPP = 95,
};

static inline uint64_t failure(int number)
{
    return (uint64_t)-(int64_t)number;
}

#endif
