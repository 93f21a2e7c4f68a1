/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Decay-usage scheduling as in 4.4BSD (McKusick, Bostic, Karels and Quarterman 1996, section 4.4).
 * A task that recently used the CPU waits behind tasks that did not. The fewer tasks compete, the
 * faster that use is forgotten.
 *
 *     priority = 50 + estcpu / 4 + 2 nice, at most 127          the lowest is served first
 *     estcpu   = estcpu + 1 for each hundredth of a second on the CPU, at most 255
 *     estcpu   = estcpu 2 load / (2 load + 1) + nice            once a second
 *
 * The load is the number of tasks that can run, averaged over a minute; the average starts with its
 * value after the first second. A task that slept decays equally for each second asleep, without
 * its nice value. Priorities are sorted into lists by fours; within a list tasks take turns of a
 * tenth of a second. A task that wakes preempts if its priority is better. A child starts with its
 * parent's estcpu.
 *
 * `second_ms`: the length of a second, which scales all of these rules.
 *
 * Left out: priorities of sleep within the kernel; short sleepers in the load; the estcpu that a
 * parent gets when a child ends. The last list holds all priorities from 110.
 */

#include "level_lists.h"
#include "policy.h"

enum { BSD_SECOND };

static const struct tunable bsd_tunables[] = {
    [BSD_SECOND] = {"second_ms", "milliseconds from one decay to the next; a turn is a tenth", 100,
                    1000, 100000},
};

#define BSD_BEST      50
#define BSD_WORST     127
#define BSD_COUNT_MAX 255 /* of estcpu */
#define BSD_LOAD_ONE  1024
#define BSD_MINUTE    60
#define BSD_FORGOTTEN 64 /* consecutive seconds that are considered */

struct bsd_task {
    uint64_t usage;   /* estcpu, in nanoseconds: a count is a hundredth of a second */
    uint64_t charged; /* run_time that `usage` already includes */
    uint64_t second;  /* it has decayed up to this second */
    uint64_t turn;    /* its run_time when it was picked */
    uint32_t rank;    /* of its list while it waits */
};

struct bsd_queue {
    struct level_counts counts;
    struct level_lists lists;
    uint64_t second; /* all waiting tasks have decayed up to it, and the load is known; 0: none */
    uint64_t load;   /* in units of 1/BSD_LOAD_ONE */
};

_Static_assert(sizeof(struct bsd_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct bsd_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct bsd_task SHARED_MEMORY bsd_task_t;
typedef struct bsd_queue SHARED_MEMORY bsd_queue_t;

POLICY_FUNCTION bsd_task_t *bsd_task_of(const task_t *task)
{
    return STATE_OF(task, struct bsd_task);
}

POLICY_FUNCTION bsd_queue_t *bsd_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct bsd_queue);
}

/* Nanoseconds. */
POLICY_FUNCTION uint64_t bsd_second(const scheduler_t *scheduler)
{
    return (uint64_t)scheduler->tunable[BSD_SECOND] * 1000000;
}

/* ---- estcpu and priority ---- */

POLICY_FUNCTION uint64_t bsd_limited(const scheduler_t *scheduler, int64_t usage)
{
    int64_t most = (int64_t)(bsd_second(scheduler) / 100 * BSD_COUNT_MAX);
    return (uint64_t)(usage < 0 ? 0 : usage > most ? most : usage);
}

/* Charges the task for its CPU use since the last charge. */
POLICY_FUNCTION void bsd_charge(const scheduler_t *scheduler, const task_t *task)
{
    bsd_task_t *state = bsd_task_of(task);
    state->usage =
        bsd_limited(scheduler, (int64_t)(state->usage + task->run_time - state->charged));
    state->charged = task->run_time;
}

/* Applies the decays of all seconds since the task's last decay. */
POLICY_FUNCTION void bsd_decay(const run_queue_t *queue, const task_t *task, bool awake)
{
    const bsd_queue_t *all = bsd_queue_of(queue);
    bsd_task_t *state = bsd_task_of(task);
    int64_t nice = awake ? task->nice * (int64_t)(bsd_second(queue->scheduler) / 100) : 0;
    uint64_t seconds = all->second > state->second ? all->second - state->second : 0;
    seconds = seconds < BSD_FORGOTTEN ? seconds : BSD_FORGOTTEN;
    state->second = all->second;
    for (uint64_t i = LOOP_START(0); i < seconds && LOOP_GUARD; i++) {
        uint64_t remaining = state->usage * 2 * all->load / (2 * all->load + BSD_LOAD_ONE);
        state->usage = bsd_limited(queue->scheduler, (int64_t)remaining + nice);
    }
}

POLICY_FUNCTION uint32_t bsd_priority(const scheduler_t *scheduler, const task_t *task)
{
    uint64_t count = bsd_task_of(task)->usage / (bsd_second(scheduler) / 100);
    int32_t priority = BSD_BEST + (int32_t)(count / 4) + 2 * task->nice;
    priority = priority < BSD_BEST ? BSD_BEST : priority;
    return (uint32_t)(priority > BSD_WORST ? BSD_WORST : priority);
}

POLICY_FUNCTION uint32_t bsd_rank(const scheduler_t *scheduler, const task_t *task)
{
    uint32_t rank = (bsd_priority(scheduler, task) - BSD_BEST) / 4;
    return rank < RANKS_MAX ? rank : RANKS_MAX - 1;
}

POLICY_FUNCTION void bsd_add(run_queue_t *queue, task_t *task)
{
    bsd_queue_t *all = bsd_queue_of(queue);
    bsd_task_t *state = bsd_task_of(task);
    state->rank = bsd_rank(queue->scheduler, task);
    task->level = state->rank;
    level_lists_add(&all->lists, &all->counts, task, state->rank, false);
}

POLICY_FUNCTION void bsd_remove(run_queue_t *queue, task_t *task)
{
    bsd_queue_t *all = bsd_queue_of(queue);
    level_lists_remove(&all->lists, &all->counts, task, bsd_task_of(task)->rank);
}

/* ---- once a second ---- */

POLICY_FUNCTION void bsd_average_load(run_queue_t *queue, uint64_t seconds)
{
    bsd_queue_t *all = bsd_queue_of(queue);
    int64_t now = (int64_t)(queue->queued + queue->running) * BSD_LOAD_ONE;
    if (all->load == 0)
        all->load = (uint64_t)now; /* the first call */
    seconds = seconds < BSD_MINUTE ? seconds : BSD_MINUTE;
    for (uint64_t i = LOOP_START(0); i < seconds && LOOP_GUARD; i++)
        all->load = (uint64_t)((int64_t)all->load + (now - (int64_t)all->load) / BSD_MINUTE);
}

/* Returns true if a second has begun since the last call. */
POLICY_FUNCTION bool bsd_second_begins(run_queue_t *queue)
{
    bsd_queue_t *all = bsd_queue_of(queue);
    uint64_t second = queue->now / bsd_second(queue->scheduler) + 1;
    if (second == all->second)
        return false;
    if (all->second > 0)
        bsd_average_load(queue, second - all->second);
    all->second = second;
    return true;
}

/* Decays all waiting tasks once a second and moves them to their new lists. */
POLICY_FUNCTION void bsd_look_at_clock(run_queue_t *queue)
{
    const bsd_queue_t *all = bsd_queue_of(queue);
    if (!bsd_second_begins(queue))
        return;
    uint32_t rank = (uint32_t)LOOP_START(0);
    task_t *task = all->lists.list[0].first;
    while (LOOP_GUARD) {
        if (!task) {
            if (++rank >= RANKS_MAX)
                break;
            task = all->lists.list[rank].first;
            continue;
        }
        task_t *next = task->next;
        bsd_decay(queue, task, true);
        if (bsd_rank(queue->scheduler, task) != bsd_task_of(task)->rank) {
            bsd_remove(queue, task);
            bsd_add(queue, task);
        }
        task = next;
    }
}

/* ---- hooks ---- */

POLICY_FUNCTION void bsd_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    (void)scheduler;
    bsd_task_of(task)->charged = task->run_time;
    if (parent)
        bsd_task_of(task)->usage = bsd_task_of(parent)->usage;
}

POLICY_FUNCTION void bsd_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    bsd_task_t *state = bsd_task_of(task);
    bsd_look_at_clock(queue);
    if (state->second == 0)
        state->second = bsd_queue_of(queue)->second;
    bsd_decay(queue, task, reason != ENQUEUE_WOKEN);
    bsd_add(queue, task);
}

POLICY_FUNCTION task_t *bsd_pick(run_queue_t *queue, uint32_t cpu)
{
    bsd_queue_t *all = bsd_queue_of(queue);
    if (queue_bars(queue, cpu) && !level_lists_first_on(&all->lists, &all->counts, cpu))
        return NULL;
    bsd_look_at_clock(queue);
    task_t *task = level_lists_take_first_on(&all->lists, &all->counts, cpu);
    if (!task)
        return NULL;
    bsd_task_of(task)->turn = task->run_time;
    queue->remark = bsd_task_of(task)->rank;
    return task;
}

/* Ends the turn at the tick nearest to the planned end. */
POLICY_FUNCTION enum tick_verdict bsd_tick(run_queue_t *queue, task_t *task)
{
    const bsd_task_t *state = bsd_task_of(task);
    uint64_t slice = bsd_second(queue->scheduler) / 10;
    bsd_charge(queue->scheduler, task);
    bsd_look_at_clock(queue);
    bsd_decay(queue, task, true);
    uint32_t rank = bsd_rank(queue->scheduler, task);
    uint32_t first = level_first(&bsd_queue_of(queue)->counts);
    bool over = task->run_time - state->turn + queue->scheduler->tick_ns / 2 >= slice;
    return first < rank || (over && first == rank) ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION void bsd_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    (void)reason;
    bsd_charge(queue->scheduler, task);
}

POLICY_FUNCTION bool bsd_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    return bsd_priority(queue->scheduler, task) < bsd_priority(queue->scheduler, running);
}

POLICY_FUNCTION uint64_t bsd_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return bsd_second(scheduler) / 10 / scheduler->tick_ns + 1;
}

POLICY_DEFINITION policy_bsd = {
    .name = "bsd",
    .meaning = "tasks that recently used the CPU wait behind others, until that use has decayed",
    .source = "McKusick, Bostic, Karels and Quarterman 1996: 4.4BSD",
    .order =
        "The task with the best priority is next: the one that has used the CPU least of late.",
    .levels = "Level 0 has used the CPU least of late, level 15 most; each is four priorities.",
    .remark = "level {}: the best at which a task waits",
    .level_order = LEVELS_LOWEST_FIRST,
    .remark_kind = REMARK_LEVEL,
    .cost = COST_CONSTANT,
    .reads = "nice",
    .tunables = bsd_tunables,
    .tunable_count = sizeof(bsd_tunables) / sizeof(bsd_tunables[0]),
    .rounds = 20,
    .task_bytes = sizeof(struct bsd_task),
    .enqueue = bsd_enqueue,
    .dequeue = bsd_remove,
    .pick = bsd_pick,
    .tick = bsd_tick,
    .time_slice = bsd_time_slice,
    .queue_init = level_queue_init,
    .task_init = bsd_task_init,
    .stopped = bsd_stopped,
    .preempts = bsd_preempts,
};
