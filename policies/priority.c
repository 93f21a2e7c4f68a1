/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Priority scheduling: the task of the highest priority runs; those of equal
 * priority take turns. Level 0 is the highest. A task that waits rises by a level
 * at every multiple of the aging interval, so that none starves; once it has had
 * its turn it is back at its own level.
 *
 * Aging at a fixed cost: nothing is done to a task. Each level's list, as a whole,
 * is appended to that of the level above, and the queue counts the levels by which
 * its tasks have risen so far. A task notes that count when it is queued; the
 * difference tells its level when it leaves. Tasks that do not age wait in lists
 * of their own.
 *
 * On several CPUs, too, no task runs for longer than a tick while a higher one
 * waits: who wakes goes to the CPU that serves the lowest level, and at its ticks
 * each CPU looks for a task that is higher than its own.
 *
 * Preset `thesis` (study 1): a raise is permanent; level 5 is served before level
 * 0; PIDs above 100 are always at level 5; who has run for over 10,000 ticks is
 * ended; a new process goes to the CPU where the fewest wait (who runs there does
 * not count) and stays there; and a higher one that wakes must wait for the end of
 * the tick. Where the study's code differs from its text, this follows the text: the
 * code counts passes of the scheduler instead of ticks; all age, those that run or
 * sleep and PIDs 1 and 2, too; processes are ended by age, not run time; and who
 * wakes, unless at level 5, is at level 0 from then on.
 *
 * Preset `proposed`: the default with what the study proposes in section 8.1.
 */

#include "level_lists.h"
#include "placement.h"
#include "policy.h"

enum {
    PRIORITY_SLICE,
    PRIORITY_AGING_INTERVAL,
    PRIORITY_AGING_STEP,
    PRIORITY_AGING_KEEPS,
    PRIORITY_STALLED_AFTER,
    PRIORITY_STALLED_INTERVAL,
    PRIORITY_EXEMPT_PIDS,
    PRIORITY_LEVEL_WIDTH,
    PRIORITY_BEHAVIOUR,
    PRIORITY_FAST_LANE,
    PRIORITY_PID_LIMIT,
    PRIORITY_KILL_AFTER,
    PRIORITY_PREEMPTION,
    PRIORITY_PLACEMENT,
    PRIORITY_BALANCING,
    PRIORITY_TUNABLES,
};

enum { PLACE_LOWEST, PLACE_FEWEST_WAITING, PLACE_LEAST_WEIGHT };

enum { PID_MAX = 0x7fffffff };

static const struct tunable priority_tunables[] = {
    [PRIORITY_SLICE] = {"slice", "ticks of a turn among tasks of the same level", 1, 1, 1000},
    [PRIORITY_AGING_INTERVAL] = {"aging_interval",
                                 "ticks between raises of those that wait; 0: none", 0, 50,
                                 1000000},
    [PRIORITY_AGING_STEP] = {"aging_step", "levels of a raise", 1, 1, PRIORITY_LOWEST},
    [PRIORITY_AGING_KEEPS] = {"aging_keeps", "a raise is 0: for one turn; 1: until priority is set",
                              0, 0, 1},
    [PRIORITY_STALLED_AFTER] =
        {"stalled_after",
         "ticks; while the first in some level's line has waited for longer, "
         "its CPU's tasks rise every stalled_interval; 0: off",
         0, 0, 1000000},
    [PRIORITY_STALLED_INTERVAL] = {"stalled_interval", "ticks between raises then", 1, 25, 1000000},
    [PRIORITY_EXEMPT_PIDS] = {"exempt_pids", "PIDs up to this neither age nor are ended", 0, 2,
                              PID_MAX},
    [PRIORITY_LEVEL_WIDTH] = {"level_width", "priorities at one level; 3: 0-2, 3-5, 6-8, 9-10", 1,
                              1, PRIORITY_LOWEST + 1},
    [PRIORITY_BEHAVIOUR] = {"behaviour",
                            "ticks run or slept, after which who hardly slept sinks by a level and "
                            "who mostly slept rises, by two levels at most; 0: off",
                            0, 0, 1000000},
    [PRIORITY_FAST_LANE] = {"fast_lane", "1: priority 5 is served before priority 0", 0, 0, 1},
    [PRIORITY_PID_LIMIT] = {"pid_limit", "PIDs above this have priority 5 and do not age; 0: none",
                            0, 0, PID_MAX},
    [PRIORITY_KILL_AFTER] = {"kill_after", "ticks of run time after which a task is ended; 0: none",
                             0, 0, 1000000000},
    [PRIORITY_PREEMPTION] = {"preemption", "a higher task takes over 0: at a tick; 1: at once", 0,
                             1, 1},
    [PRIORITY_PLACEMENT] = {"placement",
                            "0: on the CPU that serves the lowest level; or, when forked, where "
                            "1: the fewest wait; 2: the sum of 10 - level is least",
                            PLACE_LOWEST, PLACE_LOWEST, PLACE_LEAST_WEIGHT},
    [PRIORITY_BALANCING] = {"balancing", "1: tasks move between CPUs; 0: they stay", 0, 1, 1},
};

static const struct preset priority_presets[] = {
    {"thesis",
     "permanent raises, the fast lane, PIDs above 100 at level 5, no balancing (study 1)",
     {{"aging_keeps", 1},
      {"fast_lane", 1},
      {"pid_limit", 100},
      {"kill_after", 10000},
      {"preemption", 0},
      {"placement", PLACE_FEWEST_WAITING},
      {"balancing", 0}}},
    {"proposed",
     "dynamic aging, four levels, priority by behaviour and placement by weight (study 1, 8.1)",
     {{"stalled_after", 100},
      {"level_width", 3},
      {"behaviour", 100},
      {"placement", PLACE_LEAST_WEIGHT}}},
};

enum {
    LEVELS = PRIORITY_LOWEST + 1,
    NO_LEVEL = LEVELS, /* of a CPU that runs nobody */
    NO_LANE = NO_LEVEL + 1,
    BIAS_MAX = 2, /* levels by which its behaviour may move a task */
};

struct priority_scheduler {
    uint32_t lowest;    /* level */
    uint32_t fast_lane; /* the level that is served first, out of its order */
};

struct priority_task {
    uint64_t raised;  /* the queue's count when `level` was right */
    uint64_t order;   /* of arrival in its queue */
    int32_t priority; /* the one that its level comes from; -1: none yet */
    uint32_t level;   /* when its wait began; of its turn, if it runs */
    uint32_t kept;    /* levels by which it has risen for good */
    uint32_t ticks;   /* of its turn, used */
    int32_t bias;     /* levels by which it has sunk for its behaviour */
    bool ages;
    uint64_t judged; /* its run time when its behaviour was judged last */
    uint64_t slept;  /* nanoseconds since then */
    uint64_t blocked_at;
};

/* Lists and comparisons of levels go by rank, see priority_rank(). */
struct priority_queue {
    struct level_lists aging;
    struct level_lists steady; /* of tasks that do not age */
    uint64_t aged_until;
    uint64_t next_raise; /* nanoseconds; nothing is due before */
    uint64_t raised;     /* levels by which those that wait have risen so far */
    uint64_t arrivals;
    uint32_t running; /* level of the task that runs */
};

_Static_assert(sizeof(struct priority_scheduler) <= POLICY_SCHEDULER_BYTES, "its state fits");
_Static_assert(sizeof(struct priority_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct priority_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(NO_LEVEL + 1 < LEVEL_LISTS_MAX, "each level and the fast lane have a list");
_Static_assert(sizeof(priority_tunables) / sizeof(priority_tunables[0]) == PRIORITY_TUNABLES,
               "all are there");

typedef struct priority_task SHARED_MEMORY priority_task_t;
typedef struct priority_queue SHARED_MEMORY priority_queue_t;

POLICY_FUNCTION priority_task_t *priority_task_of(const task_t *task)
{
    return STATE_OF(task, struct priority_task);
}

POLICY_FUNCTION priority_queue_t *priority_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct priority_queue);
}

POLICY_FUNCTION uint64_t priority_ticks(const scheduler_t *scheduler, uint32_t tunable)
{
    return (uint64_t)scheduler->tunable[tunable] * scheduler->tick_ns;
}

/* ---- levels ---- */

POLICY_FUNCTION bool priority_is_given(const scheduler_t *scheduler, const task_t *task)
{
    int64_t limit = scheduler->tunable[PRIORITY_PID_LIMIT];
    return limit > 0 && task->pid > limit;
}

POLICY_FUNCTION bool priority_is_exempt(const scheduler_t *scheduler, const task_t *task)
{
    return task->pid <= scheduler->tunable[PRIORITY_EXEMPT_PIDS];
}

/* As the task's attributes say. */
POLICY_FUNCTION uint32_t priority_level(const scheduler_t *scheduler, const task_t *task)
{
    int32_t priority = priority_is_given(scheduler, task) ? PRIORITY_DEFAULT : task->priority;
    return (uint32_t)priority / (uint32_t)scheduler->tunable[PRIORITY_LEVEL_WIDTH];
}

/* The task's own level, to which it returns after a turn. */
POLICY_FUNCTION uint32_t priority_own_level(const scheduler_t *scheduler, const task_t *task)
{
    const priority_task_t *own = priority_task_of(task);
    int32_t lowest = (int32_t)STATE_OF(scheduler, struct priority_scheduler)->lowest;
    int32_t level = (int32_t)priority_level(scheduler, task) + own->bias - (int32_t)own->kept;
    return level < 0 ? 0 : (uint32_t)(level > lowest ? lowest : level);
}

/* A level's place in the order of service; 0 comes first. */
POLICY_FUNCTION uint32_t priority_rank(const scheduler_t *scheduler, uint32_t level)
{
    bool first = level == STATE_OF(scheduler, struct priority_scheduler)->fast_lane;
    return first ? 0 : level + 1;
}

/* LEVEL_LISTS_MAX: nobody waits. */
POLICY_FUNCTION uint32_t priority_waiting_rank(const run_queue_t *queue)
{
    const priority_queue_t *state = priority_queue_of(queue);
    return first_level(state->aging.occupied | state->steady.occupied);
}

POLICY_FUNCTION uint32_t priority_running_rank(const run_queue_t *queue)
{
    return priority_rank(queue->scheduler, priority_queue_of(queue)->running);
}

/* ---- aging ---- */

/* Does the first in some level's line, below level 0, wait for too long? */
POLICY_FUNCTION bool priority_has_stalled(const run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t patience = priority_ticks(scheduler, PRIORITY_STALLED_AFTER);
    for (uint32_t level = 1; level < LEVELS && LOOP_GUARD; level++) {
        uint32_t rank = priority_rank(scheduler, level);
        const task_t *task = priority_queue_of(queue)->aging.list[rank].first;
        if (task && queue->now - task->queued_since > patience)
            return true;
    }
    return false;
}

/* How many multiples of `length` have come since the queue was aged last. Notes the next one. */
POLICY_FUNCTION uint64_t priority_multiples(run_queue_t *queue, uint64_t length)
{
    priority_queue_t *state = priority_queue_of(queue);
    uint64_t past = queue->now / length;
    if ((past + 1) * length < state->next_raise)
        state->next_raise = (past + 1) * length;
    return past - state->aged_until / length;
}

POLICY_FUNCTION uint64_t priority_raises_due(run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t interval = priority_ticks(scheduler, PRIORITY_AGING_INTERVAL);
    priority_queue_of(queue)->next_raise = UINT64_MAX;
    if (interval == 0)
        return 0;
    uint64_t due = priority_multiples(queue, interval);
    if (scheduler->tunable[PRIORITY_STALLED_AFTER] == 0)
        return due;
    uint64_t stalled = priority_ticks(scheduler, PRIORITY_STALLED_INTERVAL);
    uint64_t due_if_stalled = priority_multiples(queue, stalled);
    return due_if_stalled != due && priority_has_stalled(queue) ? due_if_stalled : due;
}

/* Brings the lists up to the queue's time: first of all in each hook that needs them. */
POLICY_FUNCTION void priority_age(run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    priority_queue_t *state = priority_queue_of(queue);
    if (queue->now < state->next_raise)
        return;
    uint64_t rise = priority_raises_due(queue) * (uint64_t)scheduler->tunable[PRIORITY_AGING_STEP];
    state->aged_until = queue->now;
    state->raised += rise;
    for (uint32_t level = 1; level < LEVELS && rise > 0 && LOOP_GUARD; level++) {
        uint32_t to = level > rise ? level - (uint32_t)rise : 0;
        level_lists_move(&state->aging, priority_rank(scheduler, level),
                         priority_rank(scheduler, to));
    }
}

/* Gives the task the raises that came while it waited. */
POLICY_FUNCTION void priority_catch_up(const run_queue_t *queue, task_t *task)
{
    priority_task_t *own = priority_task_of(task);
    uint64_t rise = own->ages ? priority_queue_of(queue)->raised - own->raised : 0;
    if (rise > own->level)
        rise = own->level;
    own->level -= (uint32_t)rise;
    if (queue->scheduler->tunable[PRIORITY_AGING_KEEPS])
        own->kept += (uint32_t)rise;
    task->level = own->level;
}

/* ---- behaviour ---- */

/* Time in the queue does not count: it says nothing of what the task wants. */
POLICY_FUNCTION void priority_judge(const scheduler_t *scheduler, const task_t *task)
{
    priority_task_t *own = priority_task_of(task);
    uint64_t period = priority_ticks(scheduler, PRIORITY_BEHAVIOUR);
    uint64_t total = task->run_time - own->judged + own->slept;
    if (period == 0 || total < period)
        return;
    if (own->slept <= total / 10 && own->bias < BIAS_MAX)
        own->bias++;
    else if (own->slept > total / 2 && own->bias > -BIAS_MAX)
        own->bias--;
    own->judged = task->run_time;
    own->slept = 0;
}

/* ---- one queue ---- */

POLICY_FUNCTION void priority_scheduler_init(scheduler_t *scheduler)
{
    struct priority_scheduler SHARED_MEMORY *state = STATE_OF(scheduler, struct priority_scheduler);
    uint32_t width = (uint32_t)scheduler->tunable[PRIORITY_LEVEL_WIDTH];
    state->lowest = PRIORITY_LOWEST / width;
    state->fast_lane = scheduler->tunable[PRIORITY_FAST_LANE] ? PRIORITY_DEFAULT / width : NO_LANE;
}

POLICY_FUNCTION void priority_queue_init(run_queue_t *queue)
{
    priority_queue_of(queue)->running = NO_LEVEL;
}

POLICY_FUNCTION void priority_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    priority_task_t *own = priority_task_of(task);
    (void)parent;
    own->priority = -1;
    own->ages = !priority_is_exempt(scheduler, task) && !priority_is_given(scheduler, task);
    own->judged = task->run_time;
}

POLICY_FUNCTION level_lists_t *priority_lists(const run_queue_t *queue, const task_t *task)
{
    priority_queue_t *state = priority_queue_of(queue);
    return priority_task_of(task)->ages ? &state->aging : &state->steady;
}

/* Sets the level at which the task is queued. True: it goes on with its turn, before the others
 * at its level. */
POLICY_FUNCTION bool priority_begin_wait(const scheduler_t *scheduler, const task_t *task,
                                         enum enqueue_reason reason)
{
    priority_task_t *own = priority_task_of(task);
    bool changed = own->priority != task->priority;
    bool lost_cpu = reason == ENQUEUE_PREEMPTED || reason == ENQUEUE_EXPIRED;
    if (!changed && lost_cpu && own->ticks < scheduler->tunable[PRIORITY_SLICE])
        return true;
    if (!changed && reason == ENQUEUE_MOVED)
        return false;
    if (changed) {
        own->priority = task->priority;
        own->kept = 0;
        own->bias = 0;
    }
    own->ticks = 0;
    own->level = priority_own_level(scheduler, task);
    return false;
}

POLICY_FUNCTION void priority_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    const scheduler_t *scheduler = queue->scheduler;
    priority_queue_t *state = priority_queue_of(queue);
    priority_task_t *own = priority_task_of(task);
    priority_age(queue);
    if (reason == ENQUEUE_WOKEN) {
        own->slept += queue->now - own->blocked_at;
        priority_judge(scheduler, task);
    }
    bool goes_on = priority_begin_wait(scheduler, task, reason);
    if (!goes_on)
        own->order = state->arrivals++;
    own->raised = state->raised;
    task->level = own->level;
    level_lists_add(priority_lists(queue, task), task, priority_rank(scheduler, own->level),
                    goes_on);
}

/* Takes out a task, in a queue that is up to its time. */
POLICY_FUNCTION void priority_take(run_queue_t *queue, task_t *task)
{
    priority_catch_up(queue, task);
    level_lists_remove(priority_lists(queue, task), task,
                       priority_rank(queue->scheduler, priority_task_of(task)->level));
}

POLICY_FUNCTION void priority_dequeue(run_queue_t *queue, task_t *task)
{
    priority_age(queue);
    priority_take(queue, task);
}

/* Who is first, of those that age and those that do not; null: nobody waits. */
POLICY_FUNCTION task_t *priority_first(const run_queue_t *queue)
{
    const priority_queue_t *state = priority_queue_of(queue);
    uint32_t rank = priority_waiting_rank(queue);
    if (rank == LEVEL_LISTS_MAX)
        return NULL;
    task_t *aging = state->aging.list[rank].first;
    task_t *steady = state->steady.list[rank].first;
    if (!aging || !steady)
        return aging ? aging : steady;
    return priority_task_of(aging)->order < priority_task_of(steady)->order ? aging : steady;
}

POLICY_FUNCTION task_t *priority_steal(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    priority_age(queue);
    task_t *task = priority_first(queue);
    if (task)
        priority_take(queue, task);
    return task;
}

POLICY_FUNCTION task_t *priority_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = priority_steal(queue, cpu);
    if (task) {
        priority_queue_of(queue)->running = priority_task_of(task)->level;
        queue->remark = priority_task_of(task)->level;
    }
    return task;
}

POLICY_FUNCTION void priority_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    priority_queue_of(queue)->running = NO_LEVEL;
    if (reason == STOP_BLOCKED)
        priority_task_of(task)->blocked_at = queue->now;
}

POLICY_FUNCTION enum tick_verdict priority_tick(run_queue_t *queue, task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    priority_task_t *own = priority_task_of(task);
    uint64_t limit = priority_ticks(scheduler, PRIORITY_KILL_AFTER);
    if (limit > 0 && task->run_time > limit && !priority_is_exempt(scheduler, task))
        return TICK_KILL;
    priority_age(queue);
    priority_judge(scheduler, task);
    own->ticks++;
    bool turn_is_over = own->ticks >= scheduler->tunable[PRIORITY_SLICE];
    if (turn_is_over) /* balance() must know that the raise of this turn is over, too */
        priority_queue_of(queue)->running = priority_own_level(scheduler, task);
    bool higher_waits = priority_waiting_rank(queue) < priority_running_rank(queue);
    return turn_is_over || higher_waits ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t priority_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[PRIORITY_SLICE];
}

POLICY_FUNCTION bool priority_preempts(run_queue_t *queue, const task_t *task,
                                       const task_t *running)
{
    const scheduler_t *scheduler = queue->scheduler;
    return scheduler->tunable[PRIORITY_PREEMPTION] &&
           priority_rank(scheduler, priority_task_of(task)->level) <
               priority_rank(scheduler, priority_task_of(running)->level);
}

/* ---- several CPUs ---- */

/* The rank that the CPU serves, or will as soon as it picks. */
POLICY_FUNCTION uint32_t priority_served_rank(const run_queue_t *queue)
{
    uint32_t running = priority_running_rank(queue);
    uint32_t waiting = priority_waiting_rank(queue);
    return waiting < running ? waiting : running;
}

POLICY_FUNCTION uint32_t priority_waiting_at(const run_queue_t *queue, uint32_t rank)
{
    const priority_queue_t *state = priority_queue_of(queue);
    return state->aging.waiting[rank] + state->steady.waiting[rank];
}

POLICY_FUNCTION uint64_t priority_weight(const run_queue_t *queue)
{
    uint32_t running = priority_queue_of(queue)->running;
    uint64_t weight = running == NO_LEVEL ? 0 : PRIORITY_LOWEST - running;
    for (uint32_t level = 0; level < LEVELS && LOOP_GUARD; level++) {
        uint64_t waiting = priority_waiting_at(queue, priority_rank(queue->scheduler, level));
        weight += waiting * (PRIORITY_LOWEST - level);
    }
    return weight;
}

/* A task is placed where this is least. */
POLICY_FUNCTION uint64_t priority_pressure(const run_queue_t *queue)
{
    int64_t rule = queue->scheduler->tunable[PRIORITY_PLACEMENT];
    if (rule == PLACE_FEWEST_WAITING)
        return queue->queued;
    if (rule == PLACE_LEAST_WEIGHT)
        return priority_weight(queue);
    /* An idle CPU, else the one that serves the lowest level, else the one with fewer tasks. */
    return (uint64_t)(LEVEL_LISTS_MAX - priority_served_rank(queue)) << 32 | queue_load(queue);
}

POLICY_FUNCTION uint32_t priority_place(const scheduler_t *scheduler, const task_t *task,
                                        enum enqueue_reason reason)
{
    bool lowest = scheduler->tunable[PRIORITY_PLACEMENT] == PLACE_LOWEST;
    if (!lowest && reason != ENQUEUE_NEW)
        return task->cpu;
    uint32_t best = lowest && task->cpu < scheduler->queues ? task->cpu : 0;
    uint64_t least = priority_pressure(scheduler->queue[best]);
    for (uint32_t cpu = 0; cpu < scheduler->queues && LOOP_GUARD; cpu++) {
        uint64_t pressure = priority_pressure(scheduler->queue[cpu]);
        if (pressure < least) {
            best = cpu;
            least = pressure;
        }
    }
    return best;
}

POLICY_FUNCTION uint32_t priority_push(const scheduler_t *scheduler, uint32_t cpu)
{
    return scheduler->tunable[PRIORITY_BALANCING] ? push_to_idle(scheduler, cpu) : NO_CPU;
}

/*
 * Should `queue` take the first of those that wait in `other`? If it is higher than
 * all that `queue` has; or, so that equals have equal turns, if it is equal and
 * `other` serves a higher one now, or has two more at this level.
 */
POLICY_FUNCTION bool priority_should_take(const run_queue_t *queue, const run_queue_t *other)
{
    uint32_t served = priority_served_rank(queue);
    uint32_t offered = priority_waiting_rank(other);
    uint32_t running = priority_running_rank(other);
    if (offered != served)
        return offered < served;
    uint32_t here = priority_waiting_at(queue, served) + (priority_running_rank(queue) == served);
    uint32_t there = priority_waiting_at(other, served) + (running == served);
    return running < served || there >= here + 2;
}

/* From the CPU where the highest task waits; of several, where the most wait at its level. */
POLICY_FUNCTION uint32_t priority_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    uint32_t best = NO_CPU;
    uint64_t highest = 0;
    for (uint32_t i = 0; i < scheduler->queues && LOOP_GUARD; i++) {
        const run_queue_t *other = scheduler->queue[i];
        uint32_t rank = priority_waiting_rank(other);
        bool runs_it_itself = idle && queue_load(other) < 2;
        if (i == cpu || rank == LEVEL_LISTS_MAX || runs_it_itself ||
            !priority_should_take(scheduler->queue[cpu], other))
            continue;
        uint64_t need = (uint64_t)(LEVEL_LISTS_MAX - rank) << 32 | priority_waiting_at(other, rank);
        if (need > highest) {
            best = i;
            highest = need;
        }
    }
    return scheduler->tunable[PRIORITY_BALANCING] ? best : NO_CPU;
}

POLICY_DEFINITION policy_priority = {
    .name = "priority",
    .meaning = "the highest priority runs, equals take turns, who waits rises",
    .source = "Cobham 1954; study 1, 2025",
    .tunables = priority_tunables,
    .tunable_count = PRIORITY_TUNABLES,
    .presets = priority_presets,
    .preset_count = sizeof(priority_presets) / sizeof(priority_presets[0]),
    .scheduler_init = priority_scheduler_init,
    .queue_init = priority_queue_init,
    .task_init = priority_task_init,
    .enqueue = priority_enqueue,
    .dequeue = priority_dequeue,
    .pick = priority_pick,
    .tick = priority_tick,
    .time_slice = priority_time_slice,
    .stopped = priority_stopped,
    .preempts = priority_preempts,
    .place = priority_place,
    .push = priority_push,
    .balance = priority_balance,
    .steal = priority_steal,
};
