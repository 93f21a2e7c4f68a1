/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Cores for applications (Caladan: Fried, Ruan, Ousterhout and Belay 2020). A core belongs to an
 * application and runs its tasks in the order of arrival; when none waits, the core is released. An
 * application without a core gets one as soon as one of its tasks waits. A scan, every few
 * microseconds, finds applications with a task that has waited since the previous scan. Such an
 * application gets another core at once: an idle core, or else one of a best-effort application. If
 * none is available, it gets the next released core.
 *
 * Applications. Each group of tasks is one, and its tasks with a nice value above 0 are another,
 * which is best-effort; the others are latency-critical. A latency-critical application is
 * guaranteed a core for each 100 of its group's weight; the root's application is guaranteed one.
 * Scans take missing guaranteed cores from applications that exceed their guarantee. Cores beyond
 * the guarantee are burstable; best-effort applications have only burstable cores. A task's turn is
 * a tick; then it releases its core if another task waits for it.
 *
 * Left out: a core dedicated to scanning (an alarm scans, while tasks wait); threads within an
 * application, which the application itself would schedule; a core that spins for some microseconds
 * before it is released; and the handling of memory bandwidth and hyperthreads, which needs
 * hardware counters.
 */

#include "policy.h"
#include "task_list.h"

/* BPF allows at most eight nested calls, including the host's. */
#define CALADAN_INLINE static inline __attribute__((always_inline, unused))

enum { LATENCY_CRITICAL, BEST_EFFORT, KINDS };

#define APPLICATIONS   (KINDS * GROUPS_MAX)
#define NO_APPLICATION APPLICATIONS
#define TURN_OVER      128 /* added to a core's owner */

enum { CALADAN_LOOK, CALADAN_PREEMPT, CALADAN_STATIC };

static const struct tunable caladan_tunables[] = {
    [CALADAN_LOOK] = {"look_us", "microseconds between two scans of the applications", 1, 10,
                      1000000},
    [CALADAN_PREEMPT] = {"preempt",
                         "1: best-effort tasks lose a core at once; 0: when their turn ends", 0, 1,
                         1},
    [CALADAN_STATIC] = {"static_percent",
                        "percent of the cores reserved for latency-critical tasks, the rest for "
                        "best-effort ones; 0: cores go where tasks wait",
                        0, 0, 100},
};

static const struct preset caladan_presets[] = {
    {"no-preemption", "best-effort tasks keep their cores until their turn ends", {{"preempt", 0}}},
};

struct caladan_task {
    uint32_t application; /* since it was last queued */
};

struct caladan_application {
    struct task_list line;
    uint32_t cores;
};

struct caladan_kind {
    uint32_t waiting; /* a bit for each application with a waiting task, */
    uint32_t granted; /* and for each that may take another core */
    uint32_t grants;  /* the number of these bits */
    uint32_t cores;   /* of all applications of the kind */
};

struct caladan_queue {
    struct caladan_application application[APPLICATIONS];
    struct caladan_kind kind[KINDS];
    uint32_t waiting;               /* tasks in all lists */
    uint8_t owner[POLICY_CPUS_MAX]; /* 1 more than the owning application; 0: none */
};

_Static_assert(sizeof(struct caladan_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct caladan_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(GROUPS_MAX == 32 && APPLICATIONS + 1 < TURN_OVER, "as bits, and as owners");

typedef struct caladan_task SHARED_MEMORY caladan_task_t;
typedef struct caladan_application SHARED_MEMORY caladan_application_t;
typedef struct caladan_kind SHARED_MEMORY caladan_kind_t;
typedef struct caladan_queue SHARED_MEMORY caladan_queue_t;

CALADAN_INLINE caladan_queue_t *caladan_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct caladan_queue);
}

CALADAN_INLINE caladan_application_t *caladan_application(const run_queue_t *queue,
                                                          uint32_t application)
{
    return &caladan_of(queue)->application[application % APPLICATIONS];
}

CALADAN_INLINE caladan_kind_t *caladan_kind(const run_queue_t *queue, uint32_t application)
{
    return &caladan_of(queue)->kind[application / GROUPS_MAX % KINDS];
}

CALADAN_INLINE uint32_t caladan_bit(uint32_t application)
{
    return 1u << application % GROUPS_MAX;
}

POLICY_FUNCTION uint32_t caladan_application_of(const run_queue_t *queue, const task_t *task)
{
    uint32_t kind = task->nice > NICE_DEFAULT ? BEST_EFFORT : LATENCY_CRITICAL;
    uint32_t group = task->group < queue->scheduler->groups ? task->group : 0;
    return kind * GROUPS_MAX + group;
}

CALADAN_INLINE bool caladan_is_best_effort(uint32_t application)
{
    return application >= BEST_EFFORT * GROUPS_MAX;
}

/* ---- the right to a core ---- */

POLICY_FUNCTION uint32_t caladan_guaranteed(const run_queue_t *queue, uint32_t application)
{
    if (caladan_is_best_effort(application))
        return 0;
    return application == 0 ? 1
                            : queue->scheduler->group[application].weight / GROUP_WEIGHT_DEFAULT;
}

/* Returns true if the application may take a core from its owner, which has `cores`. */
POLICY_FUNCTION bool caladan_may_take(const run_queue_t *queue, uint32_t application,
                                      uint32_t owner, uint32_t cores)
{
    uint32_t of = owner % TURN_OVER;
    bool best_effort = caladan_is_best_effort(application);
    if (owner == NO_APPLICATION)
        return true;
    if (application == of || (best_effort && !caladan_is_best_effort(of)))
        return false;
    if (owner >= TURN_OVER)
        return true;
    if (caladan_is_best_effort(of))
        return !best_effort && queue->scheduler->tunable[CALADAN_PREEMPT];
    return caladan_application(queue, application)->cores <
               caladan_guaranteed(queue, application) &&
           cores > caladan_guaranteed(queue, of);
}

/* Returns the maximum number of cores for all applications of the kind. */
POLICY_FUNCTION uint32_t caladan_most(const scheduler_t *scheduler, bool best_effort)
{
    uint32_t percent = (uint32_t)scheduler->tunable[CALADAN_STATIC];
    uint32_t part = scheduler->cpus * percent / 100;
    if (percent == 0)
        return scheduler->cpus * 2; /* no limit, including granted cores */
    if (best_effort)
        part = scheduler->cpus - part;
    return part > 0 ? part : 1;
}

/* Grants the application one more core, if its kind allows it: one of its tasks waits. */
POLICY_FUNCTION void caladan_grant(run_queue_t *queue, uint32_t application)
{
    caladan_kind_t *kind = caladan_kind(queue, application);
    bool best_effort = caladan_is_best_effort(application);
    if (kind->granted & caladan_bit(application) ||
        kind->cores + kind->grants >= caladan_most(queue->scheduler, best_effort))
        return;
    kind->granted |= caladan_bit(application);
    kind->grants++;
}

POLICY_FUNCTION void caladan_end_grant(run_queue_t *queue, uint32_t application)
{
    caladan_kind_t *kind = caladan_kind(queue, application);
    if (!(kind->granted & caladan_bit(application)))
        return;
    kind->granted &= ~caladan_bit(application);
    kind->grants--;
}

/* ---- scans, at multiples of the interval ---- */

/* Returns the time of the next scan that will find the task waiting since the previous scan. */
POLICY_FUNCTION uint64_t caladan_look_for(const run_queue_t *queue, const task_t *task)
{
    uint64_t look = (uint64_t)queue->scheduler->tunable[CALADAN_LOOK] * 1000;
    uint64_t match = (task->queued_since + look - 1) / look * look + look;
    uint64_t next = queue->now / look * look + look;
    return match > next ? match : next;
}

POLICY_FUNCTION bool caladan_has_waited(const run_queue_t *queue, const task_t *task)
{
    uint64_t look = (uint64_t)queue->scheduler->tunable[CALADAN_LOOK] * 1000;
    return task->queued_since + look <= queue->now / look * look;
}

/* Returns the application of the kind whose first task has waited longest. The applications are
 * given as bits. Only tasks that may run on `cpu` count, and only applications that may take the
 * core from its owner. */
POLICY_FUNCTION uint32_t caladan_longest(run_queue_t *queue, uint32_t kind, uint32_t bits,
                                         uint32_t owner, uint32_t cpu)
{
    uint32_t longest = (uint32_t)LOOP_START(NO_APPLICATION);
    uint64_t since = LOOP_START(UINT64_MAX);
    uint32_t cores = caladan_application(queue, owner % TURN_OVER)->cores + 1; /* with this one */
    for (; bits && LOOP_GUARD; bits &= bits - 1) {
        uint32_t application = kind * GROUPS_MAX + (uint32_t)__builtin_ctz(bits);
        const task_t *first =
            task_list_first_on(&caladan_application(queue, application)->line, cpu);
        if (!first || first->queued_since >= since ||
            !caladan_may_take(queue, application, owner, cores))
            continue;
        longest = application;
        since = first->queued_since;
    }
    return longest;
}

/* Returns the first application that may take core `cpu` from its owner, or NO_APPLICATION.
 * Considers those with a granted core or, with `all`, those with a waiting task. */
POLICY_FUNCTION uint32_t caladan_first(run_queue_t *queue, uint32_t owner, bool all, uint32_t cpu)
{
    const caladan_kind_t *critical = &caladan_of(queue)->kind[LATENCY_CRITICAL];
    const caladan_kind_t *others = &caladan_of(queue)->kind[BEST_EFFORT];
    uint32_t first = caladan_longest(queue, LATENCY_CRITICAL,
                                     all ? critical->waiting : critical->granted, owner, cpu);
    if (first != NO_APPLICATION)
        return first;
    return caladan_longest(queue, BEST_EFFORT, all ? others->waiting : others->granted, owner, cpu);
}

/* Sets the alarm and `held` for the host: which tasks only a scan can start, and when it comes. */
POLICY_FUNCTION void caladan_publish(run_queue_t *queue)
{
    const caladan_queue_t *queue_state = caladan_of(queue);
    queue->held = queue_state->waiting;
    for (uint32_t kind = (uint32_t)LOOP_START(0); kind < KINDS && LOOP_GUARD; kind++) {
        uint32_t bits = queue_state->kind[kind].waiting & ~queue_state->kind[kind].granted;
        uint32_t longest = caladan_longest(queue, kind, bits, NO_APPLICATION, NO_CPU);
        queue->held -= queue_state->kind[kind].grants;
        if (longest == NO_APPLICATION)
            continue;
        uint64_t look = caladan_look_for(queue, caladan_application(queue, longest)->line.first);
        if (queue->alarm == 0 || look < queue->alarm)
            queue->alarm = look;
    }
}

/* Grants a core to an application of the kind whose first task has waited, if any. */
POLICY_FUNCTION task_t *caladan_look_at(run_queue_t *queue, uint32_t kind)
{
    const caladan_kind_t *all = &caladan_of(queue)->kind[kind];
    uint32_t bits = (uint32_t)LOOP_START(all->waiting & ~all->granted);
    for (; bits && LOOP_GUARD; bits &= bits - 1) {
        uint32_t application = kind * GROUPS_MAX + (uint32_t)__builtin_ctz(bits);
        task_t *first = caladan_application(queue, application)->line.first;
        if (!first || !caladan_has_waited(queue, first))
            continue;
        caladan_grant(queue, application);
        if (all->granted & caladan_bit(application))
            return first;
    }
    return NULL;
}

/* Scans. The host finds an idle core for the returned task, or preempts one, and calls again. */
POLICY_FUNCTION task_t *caladan_alarm(run_queue_t *queue)
{
    task_t *task = caladan_look_at(queue, LATENCY_CRITICAL);
    if (!task)
        task = caladan_look_at(queue, BEST_EFFORT);
    if (task)
        queue->alarm = queue->now;
    caladan_publish(queue);
    return task;
}

POLICY_FUNCTION bool caladan_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    uint32_t application = STATE_OF(task, struct caladan_task)->application;
    uint32_t owner = STATE_OF(running, struct caladan_task)->application;
    return (caladan_kind(queue, application)->granted & caladan_bit(application)) &&
           caladan_may_take(queue, application, owner, caladan_application(queue, owner)->cores);
}

/* ---- arrival and departure of tasks ---- */

/* Queues a task. A task that left its CPU leaves the core to its application, for the host to
 * pick again. At the end of a turn, other applications of the same kind may take the core. */
POLICY_FUNCTION void caladan_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    uint32_t application = caladan_application_of(queue, task);
    caladan_application_t *application_state = caladan_application(queue, application);
    uint8_t SHARED_MEMORY *owner = &caladan_of(queue)->owner[task->cpu % POLICY_CPUS_MAX];
    bool turn_over = reason == ENQUEUE_EXPIRED || reason == ENQUEUE_YIELDED;
    STATE_OF(task, struct caladan_task)->application = application;
    task_list_append(&application_state->line, task);
    caladan_kind(queue, application)->waiting |= caladan_bit(application);
    caladan_of(queue)->waiting++;
    if (turn_over && *owner > 0)
        *owner |= TURN_OVER;
    bool came = !turn_over && reason != ENQUEUE_PREEMPTED;
    if (came && (application_state->cores == 0 || queue->scheduler->tunable[CALADAN_STATIC]))
        caladan_grant(queue, application);
    caladan_publish(queue);
}

POLICY_FUNCTION void caladan_take(run_queue_t *queue, task_t *task)
{
    uint32_t application = STATE_OF(task, struct caladan_task)->application;
    caladan_application_t *application_state = caladan_application(queue, application);
    task_list_remove(&application_state->line, task);
    caladan_of(queue)->waiting--;
    if (application_state->line.first)
        return;
    caladan_kind(queue, application)->waiting &= ~caladan_bit(application);
    caladan_end_grant(queue, application);
}

POLICY_FUNCTION void caladan_dequeue(run_queue_t *queue, task_t *task)
{
    caladan_take(queue, task);
    caladan_publish(queue);
}

POLICY_FUNCTION void caladan_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    uint32_t application = STATE_OF(task, struct caladan_task)->application;
    caladan_application_t *application_state = caladan_application(queue, application);
    application_state->cores--;
    caladan_kind(queue, application)->cores--;
    if (reason != STOP_RUNNABLE && !task_list_first_on(&application_state->line, task->cpu))
        caladan_of(queue)->owner[task->cpu % POLICY_CPUS_MAX] = 0; /* it is released */
}

/* Returns the application that owns the CPU's core now; NO_APPLICATION: idle. A granted
 * application that may take this core precedes the owner. The owner keeps the core while one of
 * its tasks waits. */
POLICY_FUNCTION uint32_t caladan_next_owner(run_queue_t *queue, uint32_t cpu)
{
    uint32_t owner = caladan_of(queue)->owner[cpu % POLICY_CPUS_MAX];
    owner = owner > 0 ? owner - 1 : NO_APPLICATION;
    if (!task_list_first_on(&caladan_application(queue, owner % TURN_OVER)->line, cpu))
        owner = NO_APPLICATION;
    uint32_t taker = caladan_first(queue, owner, false, cpu);
    if (taker != NO_APPLICATION) {
        caladan_end_grant(queue, taker);
        return taker;
    }
    /* While another policy takes over, all tasks are handed out. */
    if (owner == NO_APPLICATION && queue->scheduler->ending)
        return caladan_first(queue, owner, true, cpu);
    return owner % TURN_OVER;
}

POLICY_FUNCTION task_t *caladan_pick(run_queue_t *queue, uint32_t cpu)
{
    uint32_t application = caladan_next_owner(queue, cpu);
    bool idle = application == NO_APPLICATION;
    task_t *task =
        idle ? NULL : task_list_first_on(&caladan_application(queue, application)->line, cpu);
    caladan_of(queue)->owner[cpu % POLICY_CPUS_MAX] = (uint8_t)(idle ? 0 : application + 1);
    if (task) {
        queue->remark = queue->now - task->queued_since;
        caladan_take(queue, task);
        caladan_application(queue, application)->cores++;
        caladan_kind(queue, application)->cores++;
    }
    caladan_publish(queue);
    return task;
}

/* Ends the turn at a tick, if another task waits for the core. */
POLICY_FUNCTION enum tick_verdict caladan_tick(run_queue_t *queue, task_t *task)
{
    const caladan_kind_t *kind = caladan_of(queue)->kind;
    uint32_t application = STATE_OF(task, struct caladan_task)->application;
    bool others = caladan_application(queue, application)->line.first ||
                  kind[LATENCY_CRITICAL].granted ||
                  (caladan_is_best_effort(application) && kind[BEST_EFFORT].granted);
    return others ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t caladan_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler;
    (void)task;
    return 1;
}

POLICY_FUNCTION bool caladan_shared_queue(const scheduler_t *scheduler)
{
    (void)scheduler;
    return true;
}

POLICY_DEFINITION policy_caladan = {
    .name = "caladan",
    .meaning = "cores go within microseconds to applications whose tasks wait",
    .source = "Fried, Ruan, Ousterhout and Belay 2020",
    .order = "Of a core's application, the task that came first is next; of those that wait for a "
             "core, latency-critical ones come first, and then the one that has waited longest.",
    .remark = "waited for {}",
    .remark_kind = REMARK_TIME,
    .cost = COST_CONSTANT,
    .by_groups = GROUPS_ALWAYS,
    .reads = "nice taskgroup",
    .tunables = caladan_tunables,
    .tunable_count = sizeof(caladan_tunables) / sizeof(caladan_tunables[0]),
    .presets = caladan_presets,
    .preset_count = sizeof(caladan_presets) / sizeof(caladan_presets[0]),
    .task_bytes = sizeof(struct caladan_task),
    .enqueue = caladan_enqueue,
    .dequeue = caladan_dequeue,
    .pick = caladan_pick,
    .tick = caladan_tick,
    .stopped = caladan_stopped,
    .alarm = caladan_alarm,
    .preempts = caladan_preempts,
    .time_slice = caladan_time_slice,
    .shared_queue = caladan_shared_queue,
};
