/* SPDX-License-Identifier: MIT */
#ifndef MODEL_INSIDE_H
#define MODEL_INSIDE_H

/* The data of a model, and the functions that its source files share.   A slot is the index of a
 * process in the model's table of processes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/attribute_names.h"
#include "abi/process_info.h"
#include "abi/system_calls.h"
#include "abi/trace_format.h"
#include "model/model.h"
#include "policies/registry.h"

#define NONE  UINT32_MAX
#define NEVER INT64_MAX
/* As in schedlab.trace.bounds: the sum of two times does not overflow. */
#define TIME_MAX (INT64_C(1) << 61)
#define SECOND   INT64_C(1000000000)

/* ---- lists: rows are added at the end and removed at the start ---- */

struct list {
    uint64_t at; /* where the rows are, in bytes from the model's start */
    uint32_t row_bytes;
    uint32_t capacity;
    uint32_t first; /* the rows from `first` to before `last` exist */
    uint32_t last;
};

static inline uint32_t list_count(const struct list *list)
{
    return list->last - list->first;
}

/* ---- texts ---- */

/* Maximum length of a text in a trace: its own record and 20 more have 12 bytes each. */
#define TEXT_BYTES 252

struct text {
    uint32_t bytes; /* without a 0 */
    char byte[TEXT_BYTES];
};

/* ---- processes ---- */

enum state { RUNNABLE, RUNNING, BLOCKED };
enum why { FORKED, WOKEN, PREEMPTED, EXPIRED, YIELDED, FOUND };
enum stop { GOES_ON, STOPPED_BLOCKED, STOPPED_PREEMPTED, STOPPED_YIELDED, STOPPED_ENDED };

/*
 * A process: alive, from its FORK or FOUND record until it leaves its CPU as a zombie, or ended but
 * with events in the window.
 */
struct process {
    int64_t since;      /* when it began to run, or to wait in its present queue */
    int64_t wait_since; /* when it began to wait, in any queue */
    int64_t stay_since; /* when it began to wait at the CPU `waits_at` */
    int64_t woken_at;   /* when it was woken; -1: it has run since then */
    int64_t forked_at;  /* when it was forked; -1: it existed before the trace */
    int64_t picked_at;
    int64_t run_time;     /* of finished runs */
    int64_t waiting_time; /* of finished waits */
    int64_t waited;       /* length of the wait that preceded its unfinished run */
    int64_t born_at;
    int64_t exit_at;    /* NEVER: not reported */
    int64_t removed_at; /* when it left its CPU for the last time; NEVER: not yet */
    int64_t ran_in_window;
    int64_t waited_in_window;
    int64_t slice; /* time slice (ns); -1: unlimited or unknown */
    int64_t priority;
    int64_t tickets;
    int64_t weight;
    int64_t share_tickets; /* tickets according to the trace, which the metrics use */
    int64_t share_weight;
    int64_t share_nice;
    int64_t attribute[ATTRIBUTE_KINDS];
    uint64_t label; /* label of its group, as in the record; 0: none */
    uint64_t serial;
    uint32_t pid;
    uint32_t parent;
    uint32_t thread_of;
    uint32_t next; /* next process in its queue or, if it has ended, the process that ended next */
    uint32_t previous;
    uint32_t place;    /* among the living */
    int32_t cpu;       /* the CPU that runs it, or ran it last; -1: none */
    uint32_t queue;    /* the CPU in whose queue it waits */
    uint32_t waits_at; /* the CPU where it was placed, ran last, or was moved to */
    uint32_t level;
    uint32_t next_level; /* the level that it will have in its next time slice */
    uint32_t blocked_for;
    uint32_t selections; /* how often the scheduler chose it */
    uint32_t picks;      /* how often a CPU switched to it */
    uint16_t attributes; /* which attributes the trace contains, as bits */
    uint8_t state;
    uint8_t why;   /* why it waits (enum why), plus MOVED if it was moved */
    uint8_t stops; /* why it is about to leave its CPU; GOES_ON: unknown */
    bool used;     /* false if the slot is free */
    bool living;
    bool named;          /* the trace contains its name */
    bool is_queue_known; /* a QUEUED record has shown its queue since it last ran; a process that
                          * is picked before all others is in no queue */
    bool placed;         /* the trace shows the CPU where it waits; otherwise this is a guess */
    bool ran;
    bool exited;
    bool kin;            /* it is the trace's first process, or a descendant of it */
    bool began;          /* it began a measured window, and so does not belong to the workload */
    bool unseen;         /* what it does is unknown until a FOUND record */
    bool outside;        /* it does not belong to the workload, for any reason */
    bool of_workload;    /* computed for each frame: it belongs to the workload */
    int64_t run_now;     /* computed for each frame: running time in the window, including
                          * unfinished runs */
    int64_t wait_now;    /* computed for each frame: waiting time in the window */
    int64_t unseen_time; /* earlier time without records, also before the window */
    int64_t unseen_now;  /* time without records at present, or since its CPU's trace ended */
    uint32_t level_now;
    double share;
    double ideal;
    double demand_by_settings; /* ideal share by the attributes that the workload set, even if
                                * the policy ignores them */
};

/* ---- CPUs ---- */

/* A run as the timeline draws it. */
struct drawn {
    int64_t begin;
    int64_t end;
    int64_t waited; /* when it began */
    uint32_t pid;
    uint32_t level;
    uint16_t cpu;
    uint8_t how; /* enum stop */
};

enum text_target {
    TEXT_OF_NOTHING,
    TEXT_OF_PROCESS,
    TEXT_OF_POLICY,
    TEXT_OF_TUNABLE,
    TEXT_OF_REMARK
};

/* A text that is being assembled from several records. */
struct pending_text {
    struct text text;
    uint32_t records;
    bool over; /* its final 0 has arrived */
    uint8_t target;
    uint32_t slot;
    uint32_t shares_by;
    uint64_t serial; /* of the process */
    uint64_t mark;   /* which of the system's marks has the text */
    int64_t time;
    int64_t value; /* of a tunable */
    struct text tunable;
    bool has_tunable; /* the text so far is the name of a tunable, which has been set */
};

struct cpu {
    uint32_t running; /* slot of the running process; NONE: idle, or the CPU does not exist */
    uint32_t queue_first;
    uint32_t queue_last;
    uint32_t queue_count;
    uint64_t decided; /* serial number of the last chosen process; 0: none */
    int64_t since;    /* when its run, or its idle time, began */
    int64_t started_at;
    int64_t ended_at;
    int64_t idle_since;   /* when it became idle; -1: it is not idle, or does not exist yet */
    int64_t unseen_since; /* when the trace stopped showing its activity; -1: the trace shows it */
    int64_t busy;         /* total length of the finished runs in the window */
    int64_t busy_now;     /* computed for each frame: the same, including the unfinished run */
    int64_t entered_at;   /* its scheduler */
    int64_t entered_cycles;
    bool entered;
    struct drawn shown; /* the unfinished run, as the last frame showed it */
    bool is_shown;
    uint32_t at; /* scratch memory for sorting by CPU */
    uint32_t until;
    struct pending_text pending_text;
};

/* ---- rows of lists ---- */

enum spell_kind { RUN, WAIT, UNSEEN };

#define MOVED 0x80 /* added to the reason of a WAIT that continues at another CPU */

/* A run of a process, its wait at one CPU, or a time when the trace does not show what a CPU
 * did. */
struct spell {
    int64_t begin;
    int64_t end;
    uint32_t slot;
    uint32_t serial; /* lowest bits of the process's serial number: another process may use the
                      * slot by now */
    uint32_t level;
    uint16_t cpu;
    uint8_t kind;
    uint8_t detail; /* of a run: enum stop; of a wait: enum why, and MOVED */
};

/* An event at one time, which counts as long as that time is in the window. */
struct moment {
    int64_t time;
    int64_t value;
    union {
        struct {
            uint32_t slot;
            uint32_t serial;
        };
        struct { /* of VISITS */
            uint64_t cpu : 16;
            uint64_t duration : 48;
        };
    };
};

enum moments {
    TURNAROUNDS, /* value: -1 if the process existed before the trace */
    RESPONSES,
    LATENCIES, /* time: when the process was woken */
    WAKEUPS,
    MIGRATIONS,
    SWITCHES,
    VISITS,            /* passes through the scheduler; value: cycles */
    IDLE_WHILE_QUEUED, /* time: the end; value: the begin */
    BATCHES,           /* batches of records; value: number of records */
    MOMENTS,
};

/* Starting at `time`, this many queues have waiting processes. If only one has: which one; else -1.
 */
struct occupancy {
    int64_t time;
    uint32_t queues;
    int32_t only;
};

struct stretch {
    int64_t begin;
    int64_t end;
    uint32_t cpu;
};

struct sortable {
    int64_t key;
    uint32_t index;
};

/* ---- marks with texts ---- */

enum mark_word {
    MARK_OF_POLICY,
    MARK_OF_TUNABLE,
    MARK_OF_ATTRIBUTE,
    MARK_OF_BEGIN,
    MARK_OF_END,
    MARK_OF_START,
    MARK_OF_EXIT,
    MARK_OF_KILL,
    MARK_OF_NOTE,
    MARK_OF_LOSS,
    MARK_OF_REMARK,
};

struct mark {
    uint64_t number; /* 0: none */
    int64_t time;
    uint64_t value;
    uint32_t kind; /* enum mark_word */
    uint32_t detail;
    uint32_t pid;
    bool named;
    struct text name;
};

#define MARKS_MAX 700
/* Maximum number of marks about processes, so that many forks do not displace all other marks. */
#define LIVES_MAX 300

/* The last marks of one kind. `count`: how many there were in all. */
struct marks {
    uint64_t shown; /* number of the last mark that was in a frame */
    uint64_t count;
    uint64_t others;
    uint64_t lives;
    struct mark other[MARKS_MAX];
    struct mark life[LIVES_MAX];
};

#define DECISIONS_MAX  500
#define CANDIDATES_MAX 16

struct decision {
    uint64_t number;
    int64_t time;
    uint64_t remark;
    int64_t tickets; /* sum of the tickets of all candidates; -1: unknown */
    uint64_t parts;  /* of a ticket */
    const struct policy *policy;
    uint32_t cpu;
    uint32_t pid;
    uint32_t waited;
    uint32_t level;
    uint32_t candidates;
    bool named;
    uint32_t candidate[CANDIDATES_MAX];
    int64_t worth[CANDIDATES_MAX]; /* level or tickets of each candidate */
    struct text name;
};

struct decisions {
    uint64_t shown;
    uint64_t count;  /* of all choices */
    uint64_t stored; /* number of choices that are stored with details */
    struct decision row[DECISIONS_MAX];
};

/* ---- the active policy ---- */

struct set_tunable {
    struct text name;
    int64_t value;
};

struct in_force {
    struct text text;
    uint32_t shares_by;
    bool levels_seen; /* some task had a level other than 0 */
    bool shared_seen; /* some CPU picked a process that was not in its own queue */
    bool wants_shared_queue;
    const struct policy *policy; /* the active policy; null: this program lacks it */
    const struct policy *source; /* the policy that interprets levels and annotations; null: none */
    uint64_t ticket_parts;
    uint32_t tunable_count;
    struct set_tunable tunable[POLICY_TUNABLES_MAX]; /* tunables set since the policy became
                                                      * active */
    struct scheduler scheduler;
    uint64_t state[POLICY_SCHEDULER_BYTES / 8];
};

/* ---- the model ---- */

#define MONITOR_PIDS_MAX 4096

struct model {
    uint64_t bytes;
    struct trace_header header;
    double record_cost;
    uint64_t events;
    uint64_t lost;
    uint64_t serials;
    int64_t now;
    int64_t begin;           /* begin of the window, which never goes back */
    int64_t forgotten_until; /* older data was removed because memory was full */
    int64_t window;
    int64_t clock; /* the latest time so far; records' times may go back, this never does */
    struct occupancy searched; /* idle_search() has computed everything up to here */
    int64_t detail_from;       /* later choices are kept with their details */
    uint32_t occupied;         /* queues that contain a process */
    uint64_t occupied_sum;     /* of their numbers: if there is only one, it is this queue */
    uint32_t spells_unsettled;
    uint32_t drawn_thinned;
    bool has_started;
    bool has_shown;     /* a frame */
    bool shared;        /* one queue for all CPUs, when queues were last arranged */
    bool in_the_middle; /* the trace begins during a run: it has found a process */
    bool has_queue_records;
    bool has_visits;
    bool first;                           /* no process was forked or found yet */
    struct share_group group[GROUPS_MAX]; /* of processes, for the policy */
    uint32_t groups;                      /* the groups that were set, with the root; 0: none */
    bool tickets_used;
    bool weights_used;
    bool nices_used;
    uint32_t free_slot;
    uint32_t slots; /* slots from this one were never used */
    uint32_t slots_max;
    uint32_t living;
    uint32_t ended_first; /* ended processes in the window, in their order */
    uint32_t ended_last;
    uint32_t monitor_count;
    uint64_t cpus_at;
    uint64_t processes_at;
    uint64_t names_at;
    uint64_t living_at; /* slots, then by PID */
    uint64_t places_at; /* of slots, by a hash of PIDs */
    uint32_t places_bits;
    uint64_t scratch_at;
    uint64_t scratch_bytes;
    uint64_t message_at;
    uint64_t message_bytes;
    struct list spells;
    struct list happened[MOMENTS];
    struct list occupancy;
    struct list idle;
    struct list fresh;
    struct list fresh_idle;
    struct list past;
    struct list past_idle;
    struct in_force policy;
    struct marks marks;
    struct decisions decisions;
    uint32_t monitor_pids[MONITOR_PIDS_MAX];
};

static inline void *at(const struct model *model, uint64_t offset)
{
    return (char *)(uintptr_t)model + offset;
}

static inline struct cpu *cpu_of(const struct model *model, uint32_t cpu)
{
    return (struct cpu *)at(model, model->cpus_at) + cpu;
}

static inline struct process *process_of(const struct model *model, uint32_t slot)
{
    return (struct process *)at(model, model->processes_at) + slot;
}

static inline struct text *name_of(const struct model *model, uint32_t slot)
{
    return (struct text *)at(model, model->names_at) + slot;
}

static inline uint32_t *living_of(const struct model *model)
{
    return at(model, model->living_at);
}

static inline uint32_t *places_of(const struct model *model)
{
    return at(model, model->places_at);
}

static inline void *scratch_of(const struct model *model)
{
    return at(model, model->scratch_at);
}

static inline void *row_of(const struct model *model, const struct list *list, uint32_t index)
{
    return (char *)at(model, list->at) + (size_t)index * list->row_bytes;
}

static inline int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static inline int64_t earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* Returns the CPU that runs or queues it, or that last ran it. */
static inline int64_t process_place(const struct process *process)
{
    return process->state == RUNNABLE ? (int64_t)process->queue : process->cpu;
}

/* memory.c */
bool memory_divide(struct model *model);
/* Returns a place for one more row: the list is not full, or its first rows have gone. */
void *list_add(struct model *model, struct list *list);
void list_tidy(struct model *model, struct list *list);

/* processes.c */
uint32_t process_find(const struct model *model, uint32_t pid);
/* Returns true if all slots are used, unless settle_for_room() frees some. */
bool processes_full(const struct model *model);
/* Returns NONE if there are too many. */
uint32_t process_take(struct model *model, uint32_t pid, int64_t time, uint32_t parent);
void process_bury(struct model *model, uint32_t slot, int64_t time);
void processes_expire(struct model *model);
/* Sorts the living processes by PID. */
const uint32_t *processes_sort(struct model *model);
bool is_monitor(const struct model *model, uint32_t pid);
bool is_of_the_kernel(const struct model *model, uint32_t slot);
/* Records its name from the trace. */
void process_called(struct model *model, uint32_t slot, const struct text *name);

/* queues.c */
void queue_add(struct model *model, uint32_t slot, uint32_t queue, int64_t time);
void queue_remove(struct model *model, uint32_t slot, int64_t time);
void queue_move(struct model *model, uint32_t slot, uint32_t queue, int64_t time);
void queues_rearrange(struct model *model, int64_t time);
void stop_idling(struct model *model, uint32_t cpu, int64_t time);
void stop_unseen(struct model *model, uint32_t cpu, int64_t time);
/* Starts its wait at this CPU; `placed`: according to the trace. */
void stay_begin(struct model *model, uint32_t slot, uint32_t cpu, bool placed, int64_t time);
/* Ends its wait at this CPU. */
void stay_end(struct model *model, uint32_t slot, uint32_t cpu, int64_t time);

/* turns.c, lives.c, settings.c: a function for each kind of record */
void apply_switch(struct model *model, const struct trace_record *record);
void apply_scheduler_exit(struct model *model, const struct trace_record *record);
void process_unseen(struct model *model, uint32_t pid, int64_t time);
uint32_t appear(struct model *model, uint32_t pid, int64_t time, enum state state, uint32_t cpu);
void apply_fork(struct model *model, const struct trace_record *record);
void apply_existing(struct model *model, const struct trace_record *record);
void apply_exit(struct model *model, const struct trace_record *record);
void apply_exec(struct model *model, const struct trace_record *record);
void apply_policy(struct model *model, const struct trace_record *record);
void apply_tunable(struct model *model, const struct trace_record *record);
void apply_annotation(struct model *model, const struct trace_record *record);
void apply_attribute(struct model *model, const struct trace_record *record);
void apply_task_group(struct model *model, const struct trace_record *record);

/* choices.c */
void choices_plan(struct model *model, const struct trace_record *records, size_t count);
void apply_decision(struct model *model, const struct trace_record *record);
void silent_choice(struct model *model, uint32_t slot, int64_t time, uint32_t cpu);

/* text_assembly.c */
struct pending_text *text_begin(struct model *model, const struct trace_record *record,
                                enum text_target target, uint32_t slot);
/* Appends the 12 bytes of a record to the text. */
void text_take(struct model *model, const struct trace_record *record);
void apply_text(struct model *model, const struct trace_record *record);

/* marks.c: adds a mark of a process's event, which may be NONE, or of the system, if `pid` is 0 */
struct mark *mark_add(struct model *model, int64_t time, enum mark_word kind, uint32_t pid,
                      uint32_t slot);
/* Returns the system's mark with this number, or null if it is no longer kept. */
struct mark *mark_find(struct model *model, uint64_t number);
void apply_mark(struct model *model, const struct trace_record *record);

/* window.c */
void spell_add(struct model *model, uint32_t slot, enum spell_kind kind, uint32_t cpu,
               uint8_t detail, int64_t begin, int64_t end);
void happen(struct model *model, enum moments what, int64_t time, int64_t value, uint32_t slot);
/* Adds a visit of a CPU to its scheduler. */
void visit_add(struct model *model, uint32_t cpu, int64_t begin, int64_t end, int64_t cycles);
/* Removes rows that have left the window. */
void window_expire(struct model *model);

/* Returns true if it belongs to the slot's present process. */
static inline bool is_of(const struct process *process, uint32_t serial)
{
    return process->used && (uint32_t)process->serial == serial;
}

/* idle.c */
void idle_search(struct model *model, int64_t until);

/* drawing.c */
void draw_idle(struct model *model, const struct stretch *idle);
void drawing_settle(struct model *model);
/* Reduces the new runs to about this many. Returns how many were removed. */
uint32_t drawing_thin(struct model *model, uint32_t most);
void drawing_record(struct model *model);

/* window_update.c */
void settle(struct model *model);
void settle_for_room(struct model *model);

/* policy.c */
void policy_start(struct model *model, const struct text *text, uint32_t shares_by);
void policy_set(struct model *model, const struct text *name, int64_t value, uint32_t shares_by);
void policy_unset(struct model *model, const struct text *name);
bool has_levels(const struct model *model);
bool draws(const struct model *model);
bool remark_is_level(const struct model *model);
bool has_tickets(const struct model *model);
static inline bool has_shared_queue(const struct model *model)
{
    return model->policy.wants_shared_queue || model->policy.shared_seen;
}

/* A task's state for display: its serving level, its tickets in draws. */
struct rank_key {
    uint64_t level;
    uint64_t tickets;
};
struct rank_key rank_of(struct model *model, const struct process *process, int64_t now);

/* shares.c: computes the times of each process and CPU in the window */
void shares_compute(struct model *model);
/* Nanoseconds, at least 1. */
static inline int64_t elapsed_of(const struct model *model)
{
    return later(model->now - model->begin, 1);
}

/* sort.c: sorts by key; equal rows stay in their order. `spare` is as long. */
void sort(struct sortable *rows, struct sortable *spare, uint32_t count);
/* Returns the sum, added from the smallest to the largest; sorts the values, which are not below
 * 0. */
double sum_up(double *values, double *spare, uint32_t count);
void sort_numbers(int64_t *values, int64_t *spare, uint32_t count);
/* Returns the value of this rank in sorted order. None is below 0; `rank` is below `count`. */
int64_t value_of_rank(const int64_t *values, int64_t *spare, uint32_t count, uint32_t rank);

#endif
