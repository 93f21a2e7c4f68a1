/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Two lists; the first has priority. The tunable selects one mistake. Each mistake needs
 * certain operations to show; tests/explore/test_planted.py lists them and their number. A task
 * moves to the second level when its time slice expires.
 */

#include "policies/policy.h"
#include "policies/task_list.h"

enum { PLANTED_MISTAKE };

enum mistake {
    MISTAKE_NONE,
    MISTAKE_TWICE,     /* dequeue() leaves the task in its list */
    MISTAKE_MOVE,      /* a moved task is put into no list */
    MISTAKE_COUNT,     /* a task that is killed while queued counts twice */
    MISTAKE_OVERFLOW,  /* tickets times a number overflow */
    MISTAKE_ORDER,     /* a preempted task goes behind others; the invariant requires before */
    MISTAKE_INVERSION, /* the second level goes first after a long wait */
    MISTAKE_BEYOND,    /* a table has one place too few */
    MISTAKE_STATE,     /* reads the memory behind a task's state */
    MISTAKE_ENDED,     /* reads the task that ran last, which may have ended */
    MISTAKE_ADOPTED,   /* ignores a switch of policies */
    MISTAKE_HOST,      /* changes the host's count */
    MISTAKE_CLOCK,     /* in the invariant: slices end by the time of day */
    MISTAKE_HELD,      /* holds a task that yields alone, and sets no alarm */
    MISTAKE_VAIN,      /* changes the list though none of its tasks may run on the CPU */
    MISTAKE_GROUP,     /* a group's weight times a number overflows */
    MISTAKE_DEPTH,     /* a table has no place for a group two levels below the root */
    MISTAKE_PERIOD,    /* expects all periods to be longer than 3 ticks */
    MISTAKE_WAITER,    /* a table of tasks waiting for the same thing has one place too few */
    MISTAKE_STARVED,   /* a task with an affinity mask stays at the first level */
};

static const struct tunable planted_tunables[] = {
    [PLANTED_MISTAKE] = {"mistake", "its number in enum mistake", 0, 0, 20},
};

struct planted_task {
    uint32_t ticks;
    uint32_t level;
};

struct planted_queue {
    struct task_list lists[2];
    uint64_t count;
    uint64_t passed_over; /* picks since the second list was last served */
    task_t *last;
    uint64_t picks[2];
};

typedef struct planted_task SHARED_MEMORY planted_task_t;
typedef struct planted_queue SHARED_MEMORY planted_queue_t;

POLICY_FUNCTION bool planted_makes(const run_queue_t *queue, enum mistake mistake)
{
    return queue->scheduler->tunable[PLANTED_MISTAKE] == mistake;
}

POLICY_FUNCTION int32_t planted_group_weight(const run_queue_t *queue, const task_t *task)
{
    return (int32_t)queue->scheduler->group[task->group % GROUPS_MAX].weight;
}

POLICY_FUNCTION uint32_t planted_depth(const run_queue_t *queue, const task_t *task)
{
    uint32_t depth = LOOP_START(0);
    for (uint32_t group = task->group % GROUPS_MAX; group > 0 && LOOP_GUARD; depth++)
        group = queue->scheduler->group[group].parent % GROUPS_MAX;
    return depth;
}

/* Returns how often 3 ticks fit into the group's period. */
POLICY_FUNCTION uint64_t planted_periods(const run_queue_t *queue, const task_t *task)
{
    uint64_t period = queue->scheduler->group[task->group % GROUPS_MAX].period;
    return period / (3 * queue->scheduler->tick_ns);
}

POLICY_FUNCTION void planted_scheduler_init(scheduler_t *scheduler)
{
    scheduler->orders_waiters = scheduler->tunable[PLANTED_MISTAKE] == MISTAKE_WAITER;
}

POLICY_FUNCTION bool planted_overtakes(run_queue_t *queue, const task_t *waiter,
                                       const task_t *chosen)
{
    return STATE_OF(queue, struct planted_queue)->picks[chosen ? 2 : 0] > waiter->tickets;
}

POLICY_FUNCTION void planted_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    planted_queue_t *state = STATE_OF(queue, struct planted_queue);
    planted_task_t *task_state = STATE_OF(task, struct planted_task);
    bool first = reason == ENQUEUE_PREEMPTED;
    if (reason == ENQUEUE_EXPIRED)
        task_state->level = !(planted_makes(queue, MISTAKE_STARVED) && task->cpus);
    if (reason == ENQUEUE_WOKEN)
        task_state->level = 0;
    if (!first)
        task_state->ticks = 0;
    task->level = task_state->level;
    if (planted_makes(queue, MISTAKE_OVERFLOW))
        task->level =
            (uint64_t)(int64_t)((int32_t)task->tickets * 3000) > 0 ? task_state->level : 2;
    if (planted_makes(queue, MISTAKE_GROUP))
        task->level = planted_group_weight(queue, task) * 300000 > 0 ? task_state->level : 2;
    if (planted_makes(queue, MISTAKE_DEPTH))
        first &= state->lists[planted_depth(queue, task)].first != task;
    if (planted_makes(queue, MISTAKE_PERIOD))
        state->picks[0] += 100 / planted_periods(queue, task);
    if (planted_makes(queue, MISTAKE_ORDER))
        first = false;
    if (planted_makes(queue, MISTAKE_MOVE) && reason == ENQUEUE_MOVED)
        return;
    if (planted_makes(queue, MISTAKE_ADOPTED) && reason == ENQUEUE_ADOPTED &&
        task_state->level == 0)
        return;
    if (planted_makes(queue, MISTAKE_HELD) && reason == ENQUEUE_YIELDED && queue->queued == 0)
        queue->held++;
    task_list_t *list = &state->lists[task_state->level];
    task_list_insert_before(list, task, first ? list->first : NULL);
    state->count++;
}

POLICY_FUNCTION void planted_dequeue(run_queue_t *queue, task_t *task)
{
    planted_queue_t *state = STATE_OF(queue, struct planted_queue);
    if (planted_makes(queue, MISTAKE_TWICE) && state->count > 1)
        return;
    task_list_remove(&state->lists[STATE_OF(task, struct planted_task)->level], task);
    state->count -= planted_makes(queue, MISTAKE_COUNT) && state->count > 1 ? 2 : 1;
}

/* Called when no queued task may run on the CPU that picks. */
POLICY_FUNCTION task_t *planted_none(run_queue_t *queue)
{
    planted_queue_t *state = STATE_OF(queue, struct planted_queue);
    if (state->lists[0].first && planted_makes(queue, MISTAKE_VAIN))
        task_list_append(&state->lists[0], task_list_take_first(&state->lists[0]));
    return NULL;
}

POLICY_FUNCTION task_t *planted_pick(run_queue_t *queue, uint32_t cpu)
{
    planted_queue_t *state = STATE_OF(queue, struct planted_queue);
    if (state->count == 0 || (queue->held > 0 && !queue->scheduler->ending))
        return NULL;
    bool waits[2] = {task_list_first_on(&state->lists[0], cpu) != NULL,
                     task_list_first_on(&state->lists[1], cpu) != NULL};
    if (!waits[0] && !waits[1])
        return planted_none(queue);
    uint32_t level = !waits[0];
    if (level == 0 && waits[1] && state->passed_over < 2)
        state->passed_over++;
    if (state->passed_over == 2 && planted_makes(queue, MISTAKE_INVERSION))
        level = 1;
    if (level == 1)
        state->passed_over = 0;
    task_t *task = task_list_take_first_on(&state->lists[level], cpu);
    state->count--;
    if (planted_makes(queue, MISTAKE_ENDED) && state->last && state->last != task &&
        STATE_OF(state->last, struct planted_task)->ticks > 1000)
        return NULL;
    state->last = task;
    return task;
}

POLICY_FUNCTION enum tick_verdict planted_tick(run_queue_t *queue, task_t *task)
{
    planted_task_t *task_state = STATE_OF(task, struct planted_task);
    planted_queue_t *state = STATE_OF(queue, struct planted_queue);
    task_state->ticks++;
    if (planted_makes(queue, MISTAKE_BEYOND))
        state->picks[state->count] = task_state->ticks;
    if (planted_makes(queue, MISTAKE_STATE) && task_state->level == 1 &&
        (&task_state->ticks)[2] == 1)
        return TICK_KILL;
    if (planted_makes(queue, MISTAKE_HOST) && task_state->level == 1)
        queue->running++;
    if (planted_makes(queue, MISTAKE_CLOCK))
        return queue->now / queue->scheduler->tick_ns % 3 == 0 ? TICK_PREEMPT : TICK_CONTINUE;
    return task_state->ticks >= 2 ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION void planted_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    planted_queue_t *state = STATE_OF(queue, struct planted_queue);
    if (state->last == task && reason == STOP_ENDED && !planted_makes(queue, MISTAKE_ENDED))
        state->last = NULL;
}

POLICY_FUNCTION uint64_t planted_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)scheduler, (void)task;
    return 2;
}

POLICY_DEFINITION policy_planted = {
    .name = "planted",
    .meaning = "two levels, with a mistake",
    .source = "a test",
    .order = "The task that came first is next, of those whose turn was not over since they woke.",
    .levels = "0: since it woke last, its turn was not over",
    .level_order = LEVELS_LOWEST_FIRST,
    .tunables = planted_tunables,
    .tunable_count = sizeof(planted_tunables) / sizeof(planted_tunables[0]),
    .rounds = 2,
    .task_bytes = sizeof(struct planted_task),
    .scheduler_init = planted_scheduler_init,
    .overtakes = planted_overtakes,
    .enqueue = planted_enqueue,
    .dequeue = planted_dequeue,
    .pick = planted_pick,
    .tick = planted_tick,
    .stopped = planted_stopped,
    .time_slice = planted_time_slice,
};
