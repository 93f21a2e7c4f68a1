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
 * waits: who wakes goes to the CPU that runs the lowest level, and each CPU looks
 * at its ticks for a task that is higher than its own.
 *
 * Preset `thesis`: as study 1 published it. A raise is permanent; level 5 is
 * served before level 0; PIDs above 100 are always at level 5; a process that has
 * run for over 10,000 ticks is ended; a new process goes to the CPU where the
 * fewest wait (whoever runs there does not count) and stays there; a higher one
 * that wakes must wait for the end of the tick. Preset `proposed`: the default,
 * with what study 1 proposes in its section 8.1.
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
};

enum { MAX_PID = 0x7fffffff };

enum { PLACE_BY_LEVEL, PLACE_FEWEST_WAITING, PLACE_LEAST_WEIGHT };

static const struct tunable priority_tunables[] = {
    [PRIORITY_SLICE] = {"slice", "ticks of a turn among tasks of the same level", 1, 1, 1000},
    [PRIORITY_AGING_INTERVAL] = {"aging_interval", "ticks after which who waits rises; 0: never", 0,
                                 50, 1000000},
    [PRIORITY_AGING_STEP] = {"aging_step", "levels by which who waits rises", 1, 1, 10},
    [PRIORITY_AGING_KEEPS] = {"aging_keeps",
                              "1: a raise lasts until the priority changes; 0: for one turn", 0, 0,
                              1},
    [PRIORITY_STALLED_AFTER] = {"stalled_after",
                                "ticks; if who is first at a level has waited for longer, all of "
                                "this CPU rise at the stalled_interval; 0: off",
                                0, 0, 1000000},
    [PRIORITY_STALLED_INTERVAL] = {"stalled_interval", "ticks after which who waits rises then", 1,
                                   25, 1000000},
    [PRIORITY_EXEMPT_PIDS] = {"exempt_pids", "PIDs up to this neither age nor are ended", 0, 2,
                              MAX_PID},
    [PRIORITY_LEVEL_WIDTH] = {"level_width",
                              "priorities that share a level; 3: 0-2, 3-5, 6-8 and 9-10", 1, 1,
                              PRIORITY_LOWEST + 1},
    [PRIORITY_BEHAVIOUR] = {"behaviour",
                            "ticks run and slept after which a task that only ran sinks by a "
                            "level, one that mostly slept rises, by two at most; 0: off",
                            0, 0, 1000000},
    [PRIORITY_FAST_LANE] = {"fast_lane", "1: priority 5 is served before priority 0", 0, 0, 1},
    [PRIORITY_PID_LIMIT] = {"pid_limit", "PIDs above this always have priority 5; 0: none", 0, 0,
                            MAX_PID},
    [PRIORITY_KILL_AFTER] = {"kill_after",
                             "ticks of run time after which a task is ended; 0: never", 0, 0,
                             1000000000},
    [PRIORITY_PREEMPTION] = {"preemption", "1: a task that is queued preempts a lower one at once",
                             0, 1, 1},
    [PRIORITY_PLACEMENT] = {"placement",
                            "0: where the lowest level runs; at fork only, 1: where the fewest "
                            "wait, 2: where the sum of 10 - level is least",
                            0, PLACE_BY_LEVEL, PLACE_LEAST_WEIGHT},
    [PRIORITY_BALANCING] = {"balancing", "1: tasks move between CPUs; 0: they stay", 0, 1, 1},
};

static const struct preset priority_presets[] = {
    {"thesis",
     "study 1's scheduler, quirks included",
     {{"aging_keeps", 1},
      {"fast_lane", 1},
      {"pid_limit", 100},
      {"kill_after", 10000},
      {"preemption", 0},
      {"placement", PLACE_FEWEST_WAITING},
      {"balancing", 0}}},
    {"proposed",
     "with the improvements that study 1 proposes",
     {{"stalled_after", 100},
      {"level_width", 3},
      {"behaviour", 100},
      {"placement", PLACE_LEAST_WEIGHT}}},
};

enum {
    LEVELS = PRIORITY_LOWEST + 1,
    NO_LEVEL = LEVELS, /* of a CPU that runs nobody */
    BIAS_MAX = 2,      /* levels by which its behaviour may move a task */
};

struct priority_task {
    uint64_t raised;   /* the queue's count when `level` was right */
    uint64_t order;    /* in which it was queued among all of its queue */
    int32_t priority;  /* the one that `level` comes from; -1: none yet */
    uint32_t level;    /* when its wait began, or of its turn */
    uint32_t kept;     /* levels by which it has risen for good */
    uint32_t ticks;    /* of its turn, used */
    int32_t bias;      /* levels by which it has sunk for its behaviour */
    uint64_t ran;      /* behaviour: its run time when it was judged last */
    uint64_t slept;    /* and how long it has slept since then */
    uint64_t sleeping; /* since when it sleeps */
};

/* Lists are in the order of service, which is that of levels but for the fast lane. */
struct priority_queue {
    struct level_lists aging;
    struct level_lists steady; /* tasks that do not age */
    uint64_t aged;             /* until when raises have been done */
    uint64_t raised;           /* levels by which tasks have risen so far */
    uint64_t orders;           /* tasks queued so far */
    uint32_t running;          /* level of the task that runs */
};

_Static_assert(sizeof(struct priority_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct priority_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(NO_LEVEL + 1 < LEVEL_LISTS_MAX, "each level and the fast lane have a list");

typedef struct priority_task SHARED_MEMORY priority_task_t;
typedef struct priority_queue SHARED_MEMORY priority_queue_t;

POLICY_FUNCTION priority_task_t *priority_of(const task_t *task)
{
    return STATE_OF(task, struct priority_task);
}

POLICY_FUNCTION priority_queue_t *priority_state(const run_queue_t *queue)
{
    return STATE_OF(queue, struct priority_queue);
}

/* ---- levels ---- */

POLICY_FUNCTION uint32_t level_of_priority(const scheduler_t *scheduler, int32_t priority)
{
    return (uint32_t)priority / (uint32_t)scheduler->tunable[PRIORITY_LEVEL_WIDTH];
}

POLICY_FUNCTION bool is_above_pid_limit(const scheduler_t *scheduler, const task_t *task)
{
    int64_t limit = scheduler->tunable[PRIORITY_PID_LIMIT];
    return limit > 0 && task->pid > limit;
}

/* A raise of a task above the limit would not last: its level is given. */
POLICY_FUNCTION bool ages(const scheduler_t *scheduler, const task_t *task)
{
    return task->pid > scheduler->tunable[PRIORITY_EXEMPT_PIDS] &&
           !is_above_pid_limit(scheduler, task);
}

/* The level that the task's attributes give it. */
POLICY_FUNCTION uint32_t attributed_level(const scheduler_t *scheduler, const task_t *task)
{
    bool given = is_above_pid_limit(scheduler, task);
    return level_of_priority(scheduler, given ? PRIORITY_DEFAULT : task->priority);
}

/* The task's own level, to which it returns after its turn. */
POLICY_FUNCTION uint32_t own_level(const scheduler_t *scheduler, const task_t *task)
{
    const priority_task_t *own = priority_of(task);
    int32_t level = (int32_t)attributed_level(scheduler, task);
    if (is_above_pid_limit(scheduler, task))
        return (uint32_t)level;
    level += own->bias - (int32_t)own->kept;
    int32_t lowest = (int32_t)level_of_priority(scheduler, PRIORITY_LOWEST);
    return level < 0 ? 0 : (uint32_t)(level > lowest ? lowest : level);
}

/* The place of a level in the order of service; lists and comparisons go by it. */
POLICY_FUNCTION uint32_t place_of(const scheduler_t *scheduler, uint32_t level)
{
    bool first = scheduler->tunable[PRIORITY_FAST_LANE] != 0 &&
                 level == level_of_priority(scheduler, PRIORITY_DEFAULT);
    return first ? 0 : level + 1;
}

POLICY_FUNCTION uint32_t first_waiting(const priority_queue_t *state)
{
    return first_level(state->aging.occupied | state->steady.occupied);
}

POLICY_FUNCTION uint32_t place_running(const run_queue_t *queue)
{
    return place_of(queue->scheduler, priority_state(queue)->running);
}

/* ---- aging ---- */

/* How many multiples of `ticks` lie after `from`, up to the queue's time. */
POLICY_FUNCTION uint64_t multiples_since(const run_queue_t *queue, uint64_t from, int64_t ticks)
{
    uint64_t length = (uint64_t)ticks * queue->scheduler->tick_ns;
    return length > 0 ? queue->now / length - from / length : 0;
}

POLICY_FUNCTION bool has_stalled(const run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t patience = (uint64_t)scheduler->tunable[PRIORITY_STALLED_AFTER] * scheduler->tick_ns;
    for (uint32_t level = 1; level < LEVELS && LOOP_GUARD; level++) {
        const task_list_t *list = &priority_state(queue)->aging.list[place_of(scheduler, level)];
        if (list->first && queue->now - list->first->queued_since > patience)
            return true;
    }
    return false;
}

/* Raises that are due since the last call. */
POLICY_FUNCTION uint64_t raises_due(run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    priority_queue_t *state = priority_state(queue);
    uint64_t from = state->aged;
    state->aged = queue->now;
    int64_t interval = scheduler->tunable[PRIORITY_AGING_INTERVAL];
    uint64_t due = multiples_since(queue, from, interval);
    if (interval == 0 || scheduler->tunable[PRIORITY_STALLED_AFTER] == 0)
        return due;
    uint64_t stalled = multiples_since(queue, from, scheduler->tunable[PRIORITY_STALLED_INTERVAL]);
    return stalled != due && has_stalled(queue) ? stalled : due;
}

/* Brings the queue's lists up to its time. First in every hook that uses them. */
POLICY_FUNCTION void age(run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    priority_queue_t *state = priority_state(queue);
    uint64_t due = raises_due(queue);
    if (due == 0 || state->aging.occupied == 0)
        return;
    uint64_t rise = due * (uint64_t)scheduler->tunable[PRIORITY_AGING_STEP];
    state->raised += rise;
    for (uint32_t level = 1; level < LEVELS && LOOP_GUARD; level++) {
        uint32_t to = level > rise ? level - (uint32_t)rise : 0;
        level_lists_move(&state->aging, place_of(scheduler, level), place_of(scheduler, to));
    }
}

/* Gives the task the raises that came while it was in the queue. */
POLICY_FUNCTION void catch_up(const run_queue_t *queue, task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    priority_task_t *own = priority_of(task);
    uint64_t rise = priority_state(queue)->raised - own->raised;
    if (!ages(scheduler, task))
        rise = 0;
    else if (rise > own->level)
        rise = own->level;
    own->level -= (uint32_t)rise;
    own->raised = priority_state(queue)->raised;
    if (scheduler->tunable[PRIORITY_AGING_KEEPS])
        own->kept += (uint32_t)rise;
    task->level = own->level;
}

/* ---- behaviour ---- */

/* Time spent waiting for a CPU says nothing of what a task wants, and does not count. */
POLICY_FUNCTION void judge(const scheduler_t *scheduler, const task_t *task)
{
    priority_task_t *own = priority_of(task);
    uint64_t period = (uint64_t)scheduler->tunable[PRIORITY_BEHAVIOUR] * scheduler->tick_ns;
    uint64_t ran = task->run_time - own->ran;
    uint64_t total = ran + own->slept;
    if (period == 0 || total < period)
        return;
    if (own->slept <= total / 10 && own->bias < BIAS_MAX)
        own->bias++;
    else if (own->slept > total / 2 && own->bias > -BIAS_MAX)
        own->bias--;
    own->ran = task->run_time;
    own->slept = 0;
}

/* ---- one queue ---- */

POLICY_FUNCTION void priority_queue_init(run_queue_t *queue)
{
    priority_state(queue)->aged = queue->now;
    priority_state(queue)->running = NO_LEVEL;
}

POLICY_FUNCTION void priority_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    (void)scheduler, (void)parent;
    priority_of(task)->priority = -1;
    priority_of(task)->ran = task->run_time;
}

POLICY_FUNCTION level_lists_t *lists_for(const run_queue_t *queue, const task_t *task)
{
    priority_queue_t *state = priority_state(queue);
    return ages(queue->scheduler, task) ? &state->aging : &state->steady;
}

/* The level at which the task is queued. Gives whether it goes on with its turn. */
POLICY_FUNCTION bool set_level(const scheduler_t *scheduler, task_t *task,
                               enum enqueue_reason reason)
{
    priority_task_t *own = priority_of(task);
    if (own->priority != task->priority) {
        own->priority = task->priority;
        own->kept = 0;
        own->bias = 0;
        own->ticks = 0;
        own->level = own_level(scheduler, task);
        return false;
    }
    bool cut_short = reason == ENQUEUE_EXPIRED && own->ticks < scheduler->tunable[PRIORITY_SLICE];
    if (reason == ENQUEUE_PREEMPTED || cut_short)
        return true;
    if (reason != ENQUEUE_MOVED) {
        own->ticks = 0;
        own->level = own_level(scheduler, task);
    }
    return false;
}

POLICY_FUNCTION void priority_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    const scheduler_t *scheduler = queue->scheduler;
    priority_queue_t *state = priority_state(queue);
    priority_task_t *own = priority_of(task);
    age(queue);
    if (reason == ENQUEUE_WOKEN) {
        own->slept += queue->now - own->sleeping;
        judge(scheduler, task);
    }
    bool goes_on = set_level(scheduler, task, reason);
    if (!goes_on)
        own->order = state->orders++;
    own->raised = state->raised;
    task->level = own->level;
    level_lists_add(lists_for(queue, task), task, place_of(scheduler, own->level), goes_on);
}

POLICY_FUNCTION void priority_dequeue(run_queue_t *queue, task_t *task)
{
    age(queue);
    catch_up(queue, task);
    uint32_t place = place_of(queue->scheduler, priority_of(task)->level);
    level_lists_remove(lists_for(queue, task), task, place);
}

/* Of the two lists at the first place, the one whose first task was queued earlier. */
POLICY_FUNCTION task_t *first_task(const priority_queue_t *state)
{
    uint32_t place = first_waiting(state);
    if (place == LEVEL_LISTS_MAX)
        return NULL;
    task_t *aging = state->aging.list[place].first;
    task_t *steady = state->steady.list[place].first;
    if (!aging || !steady)
        return aging ? aging : steady;
    return priority_of(aging)->order < priority_of(steady)->order ? aging : steady;
}

POLICY_FUNCTION task_t *priority_steal(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    age(queue);
    task_t *task = first_task(priority_state(queue));
    if (task)
        priority_dequeue(queue, task);
    return task;
}

POLICY_FUNCTION task_t *priority_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = priority_steal(queue, cpu);
    if (task) {
        priority_state(queue)->running = priority_of(task)->level;
        queue->remark = priority_of(task)->level;
    }
    return task;
}

POLICY_FUNCTION void priority_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    priority_state(queue)->running = NO_LEVEL;
    if (reason == STOP_BLOCKED)
        priority_of(task)->sleeping = queue->now;
}

POLICY_FUNCTION enum tick_verdict priority_tick(run_queue_t *queue, task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    int64_t limit = scheduler->tunable[PRIORITY_KILL_AFTER];
    age(queue);
    judge(scheduler, task);
    if (limit > 0 && task->pid > scheduler->tunable[PRIORITY_EXEMPT_PIDS] &&
        task->run_time > (uint64_t)limit * scheduler->tick_ns)
        return TICK_KILL;
    priority_of(task)->ticks++;
    bool turn_is_over = priority_of(task)->ticks >= scheduler->tunable[PRIORITY_SLICE];
    if (turn_is_over) /* balance() must know that a raise is over, too */
        priority_state(queue)->running = own_level(scheduler, task);
    bool higher_waits = first_waiting(priority_state(queue)) < place_running(queue);
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
           place_of(scheduler, priority_of(task)->level) <
               place_of(scheduler, priority_of(running)->level);
}

/* ---- several CPUs ---- */

/* The place that the CPU serves, or will as soon as it picks. */
POLICY_FUNCTION uint32_t place_served(const run_queue_t *queue)
{
    uint32_t running = place_running(queue);
    uint32_t waiting = first_waiting(priority_state(queue));
    return waiting < running ? waiting : running;
}

/* The CPU that serves the lowest level, if that is below the task's; of several, the task's own,
 * else the one with the lowest number. */
POLICY_FUNCTION uint32_t place_by_level(const scheduler_t *scheduler, const task_t *task)
{
    uint32_t best = task->cpu < scheduler->queues ? task->cpu : 0;
    uint32_t lowest = place_served(scheduler->queue[best]);
    for (uint32_t cpu = 0; cpu < scheduler->queues && LOOP_GUARD; cpu++) {
        uint32_t served = place_served(scheduler->queue[cpu]);
        if (served > lowest) {
            best = cpu;
            lowest = served;
        }
    }
    bool below = lowest > place_of(scheduler, attributed_level(scheduler, task));
    return below ? best : place_fewest(scheduler, task);
}

POLICY_FUNCTION uint64_t weight_of(const run_queue_t *queue)
{
    const priority_queue_t *state = priority_state(queue);
    uint64_t weight = state->running == NO_LEVEL ? 0 : PRIORITY_LOWEST - state->running;
    for (uint32_t level = 0; level < LEVELS && LOOP_GUARD; level++) {
        uint32_t place = place_of(queue->scheduler, level);
        uint64_t waiting = state->aging.waiting[place] + state->steady.waiting[place];
        weight += waiting * (PRIORITY_LOWEST - level);
    }
    return weight;
}

POLICY_FUNCTION uint64_t load_of(const run_queue_t *queue)
{
    bool by_weight = queue->scheduler->tunable[PRIORITY_PLACEMENT] == PLACE_LEAST_WEIGHT;
    return by_weight ? weight_of(queue) : queue->queued;
}

POLICY_FUNCTION uint32_t priority_place(const scheduler_t *scheduler, const task_t *task,
                                        enum enqueue_reason reason)
{
    if (scheduler->tunable[PRIORITY_PLACEMENT] == PLACE_BY_LEVEL)
        return place_by_level(scheduler, task);
    if (reason != ENQUEUE_NEW)
        return task->cpu;
    uint32_t best = 0;
    for (uint32_t cpu = 1; cpu < scheduler->queues && LOOP_GUARD; cpu++) {
        if (load_of(scheduler->queue[cpu]) < load_of(scheduler->queue[best]))
            best = cpu;
    }
    return best;
}

POLICY_FUNCTION uint32_t priority_push(const scheduler_t *scheduler, uint32_t cpu)
{
    return scheduler->tunable[PRIORITY_BALANCING] ? push_to_idle(scheduler, cpu) : NO_CPU;
}

POLICY_FUNCTION uint32_t waiting_at(const run_queue_t *queue, uint32_t place)
{
    const priority_queue_t *state = priority_state(queue);
    return state->aging.waiting[place] + state->steady.waiting[place];
}

/*
 * Should `queue` take the first of the tasks that wait in `other`? Yes if that is
 * higher than all of its own; and, so that equals have equal turns, if it is at the
 * level that `queue` serves and `other` serves a higher one, or has two more there.
 */
POLICY_FUNCTION bool should_take(const run_queue_t *queue, const run_queue_t *other)
{
    uint32_t served = place_served(queue);
    uint32_t offered = first_waiting(priority_state(other));
    if (offered != served)
        return offered < served;
    uint32_t running = place_running(other);
    uint32_t here = waiting_at(queue, served) + (place_running(queue) == served);
    uint32_t there = waiting_at(other, served) + (running == served);
    return running < served || there >= here + 2;
}

/* The CPU where the highest task waits that this one should take; of several, where the most
 * wait at that level, else the one with the lowest number. */
POLICY_FUNCTION uint32_t priority_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    const run_queue_t *queue = scheduler->queue[cpu];
    uint32_t best = NO_CPU;
    for (uint32_t i = 0; i < scheduler->queues && LOOP_GUARD; i++) {
        const run_queue_t *other = scheduler->queue[i];
        uint32_t offered = first_waiting(priority_state(other));
        /* Its own CPU is about to run a task that is alone there. */
        bool alone = idle && queue_load(other) < 2;
        if (i == cpu || offered == LEVEL_LISTS_MAX || alone || !should_take(queue, other))
            continue;
        uint32_t so_far = best == NO_CPU ? LEVEL_LISTS_MAX
                                         : first_waiting(priority_state(scheduler->queue[best]));
        if (offered < so_far ||
            (offered == so_far &&
             waiting_at(other, offered) > waiting_at(scheduler->queue[best], offered)))
            best = i;
    }
    return scheduler->tunable[PRIORITY_BALANCING] ? best : NO_CPU;
}

POLICY_DEFINITION policy_priority = {
    .name = "priority",
    .meaning = "the highest priority runs; who waits rises",
    .source = "priorities as in CTSS and Multics, 1960s; aging as in study 1, 2025",
    .tunables = priority_tunables,
    .tunable_count = sizeof(priority_tunables) / sizeof(priority_tunables[0]),
    .presets = priority_presets,
    .preset_count = sizeof(priority_presets) / sizeof(priority_presets[0]),
    .queue_init = priority_queue_init,
    .task_init = priority_task_init,
    .enqueue = priority_enqueue,
    .dequeue = priority_dequeue,
    .pick = priority_pick,
    .steal = priority_steal,
    .stopped = priority_stopped,
    .tick = priority_tick,
    .time_slice = priority_time_slice,
    .preempts = priority_preempts,
    .place = priority_place,
    .push = priority_push,
    .balance = priority_balance,
};
