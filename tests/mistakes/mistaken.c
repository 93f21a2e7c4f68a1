/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Round-robin that makes one of the typical mistakes of policy authors after the machine has run
 * for a moment. Its tunable selects the mistake. tests/mistakes/test_*.py check how soon and with
 * which message each host detects it.
 */

#include "policies/policy.h"
#include "policies/task_list.h"

enum { MISTAKEN_MISTAKE };

enum mistake {
    MISTAKE_NONE,
    MISTAKE_LOOP,       /* an endless loop without LOOP_GUARD */
    MISTAKE_NULL,       /* dereferences a null pointer */
    MISTAKE_DIVISION,   /* divides by zero */
    MISTAKE_BOUNDS,     /* writes past an array in the queue's state */
    MISTAKE_LOST,       /* picks null while tasks are queued */
    MISTAKE_TWICE,      /* picks a task that is already running */
    MISTAKE_STRANGER,   /* picks a pointer that is not a task */
    MISTAKE_VERDICT,    /* returns an invalid verdict */
    MISTAKE_CPU,        /* place() returns a CPU that does not exist */
    MISTAKE_HOST_FIELD, /* writes a field of the host's */
    MISTAKE_KILL,
    MISTAKE_STATE,     /* writes past the task's state */
    MISTAKE_TURN_KILL, /* kills a task between ticks */
    MISTAKE_PLACE,     /* place() returns a CPU that the task may not use */
    MISTAKE_WAITER,    /* writes a waiter's host field */
    MISTAKE_CLOCK_NS,  /* keeps the time in 32 bits, in nanoseconds */
    MISTAKE_CLOCK_US,  /* keeps the time in 32 bits, in microseconds */
    MISTAKE_CLOCK_SIGNED,
    MISTAKE_RUN_TIME,  /* keeps the run time in 32 bits, in microseconds */
    MISTAKE_TIME,      /* decides by the time: not a mistake by itself */
    MISTAKE_GUARDED,   /* an endless loop with LOOP_GUARD */
    MISTAKE_FORGOTTEN, /* enqueue() puts a task into no queue */
    MISTAKE_OVERFLOW,  /* overflows a signed number */
    MISTAKE_SHIFT,     /* shifts by more bits than the type has */
    MISTAKE_QUEUED,    /* changes the host's count of tasks */
    MISTAKE_SLICE,     /* sets a time slice of no ticks */
    MISTAKE_SET,       /* ignores the task's set of CPUs */
    MISTAKE_STARVED,   /* starves waiting tasks: no turn ends */
};

static const struct tunable mistaken_tunables[] = {
    [MISTAKEN_MISTAKE] = {"mistake", "its number in enum mistake", 0, 0, 30},
};

struct mistaken_task {
    uint32_t ticks;
};

struct mistaken_queue {
    struct task_list tasks;
    uint64_t turns[8];
    uint64_t zero;
};

typedef struct mistaken_queue SHARED_MEMORY mistaken_queue_t;

POLICY_FUNCTION bool mistaken_makes(const scheduler_t *scheduler, uint64_t now,
                                    enum mistake mistake)
{
    return scheduler->tunable[MISTAKEN_MISTAKE] == mistake && now > 20000000;
}

POLICY_FUNCTION void mistaken_scheduler_init(scheduler_t *scheduler)
{
    scheduler->orders_waiters = scheduler->tunable[MISTAKEN_MISTAKE] == MISTAKE_WAITER;
}

POLICY_FUNCTION bool mistaken_overtakes(run_queue_t *queue, const task_t *waiter,
                                        const task_t *chosen)
{
    task_t *changed = (task_t *)waiter;
    (void)chosen;
    if (mistaken_makes(queue->scheduler, queue->now, MISTAKE_WAITER))
        changed->tickets = 99;
    return false;
}

POLICY_FUNCTION void mistaken_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    mistaken_queue_t *state = STATE_OF(queue, struct mistaken_queue);
    if (reason == ENQUEUE_EXPIRED && task->pid % 8 == 4 &&
        mistaken_makes(queue->scheduler, queue->now, MISTAKE_FORGOTTEN))
        return;
    task_list_append(&state->tasks, task);
    if (mistaken_makes(queue->scheduler, queue->now, MISTAKE_DIVISION))
        task->level = queue->now / state->zero;
}

POLICY_FUNCTION void mistaken_dequeue(run_queue_t *queue, task_t *task)
{
    task_list_remove(&STATE_OF(queue, struct mistaken_queue)->tasks, task);
}

/* Arithmetic and counting mistakes. */
POLICY_FUNCTION void mistaken_count(run_queue_t *queue)
{
    mistaken_queue_t *state = STATE_OF(queue, struct mistaken_queue);
    if (mistaken_makes(queue->scheduler, queue->now, MISTAKE_OVERFLOW))
        state->turns[1] = (uint64_t)((int64_t)queue->now * INT64_MAX);
    if (mistaken_makes(queue->scheduler, queue->now, MISTAKE_SHIFT))
        state->turns[1] = 1ull << queue->now;
    if (mistaken_makes(queue->scheduler, queue->now, MISTAKE_QUEUED))
        queue->queued--;
    bool guarded = mistaken_makes(queue->scheduler, queue->now, MISTAKE_GUARDED);
    do {
        state->turns[1]++;
    } while (guarded && LOOP_GUARD);
}

/* A list whose last element points to itself. */
POLICY_FUNCTION void mistaken_search(mistaken_queue_t *state)
{
    task_t *task = state->tasks.first;
    if (task)
        task->next = task;
    while (task) {
        task = task->next;
        state->turns[0]++;
    }
}

POLICY_FUNCTION task_t *mistaken_pick(run_queue_t *queue, uint32_t cpu)
{
    mistaken_queue_t *state = STATE_OF(queue, struct mistaken_queue);
    const scheduler_t *scheduler = queue->scheduler;
    mistaken_count(queue);
    if (mistaken_makes(scheduler, queue->now, MISTAKE_LOOP))
        mistaken_search(state);
    if (mistaken_makes(scheduler, queue->now, MISTAKE_LOST))
        return NULL;
    if (mistaken_makes(scheduler, queue->now, MISTAKE_TWICE) && state->tasks.first)
        return state->tasks.first;
    if (mistaken_makes(scheduler, queue->now, MISTAKE_STRANGER))
        return (task_t *)(void SHARED_MEMORY *)state;
    if (mistaken_makes(scheduler, queue->now, MISTAKE_TURN_KILL))
        queue->turn_end = queue->now + 1;
    bool passes_over = mistaken_makes(scheduler, queue->now, MISTAKE_SET);
    task_t *task = task_list_take_first_on(&state->tasks, passes_over ? NO_CPU : cpu);
    if (mistaken_makes(scheduler, queue->now, MISTAKE_NULL))
        state->tasks.first->level = 1;
    if (task && mistaken_makes(scheduler, queue->now, MISTAKE_BOUNDS))
        state->turns[task->pid + 8] = cpu;
    return task;
}

/* Returns true if the task has run for 3 ms since its pick. */
POLICY_FUNCTION bool mistaken_turn_is_over(const run_queue_t *queue, const task_t *task)
{
    uint64_t end = task->picked_since + 3000000;
    switch (queue->scheduler->tunable[MISTAKEN_MISTAKE]) {
    case MISTAKE_CLOCK_NS:
        return (uint32_t)queue->now >= (uint32_t)end;
    case MISTAKE_CLOCK_US:
        return (uint32_t)(queue->now / 1000) >= (uint32_t)(end / 1000);
    case MISTAKE_CLOCK_SIGNED:
        return (int64_t)queue->now >= (int64_t)end;
    case MISTAKE_RUN_TIME:
        return (uint32_t)(task->run_time / 1000) > 3000;
    case MISTAKE_TIME:
        return queue->now / 11000000 % 2 == 0;
    default:
        return true;
    }
}

POLICY_FUNCTION enum tick_verdict mistaken_tick(run_queue_t *queue, task_t *task)
{
    STATE_OF(task, struct mistaken_task)->ticks++;
    if (mistaken_makes(queue->scheduler, queue->now, MISTAKE_HOST_FIELD))
        task->run_time = 0;
    if (mistaken_makes(queue->scheduler, queue->now, MISTAKE_STATE))
        (&STATE_OF(task, struct mistaken_task)->ticks)[2] = 1;
    if (mistaken_makes(queue->scheduler, queue->now, MISTAKE_VERDICT))
        return (enum tick_verdict)99;
    if (mistaken_makes(queue->scheduler, queue->now, MISTAKE_KILL)) {
        SAY(queue, task, "has had {} ticks, which is {} too many: the end", 1ull << 40, -3);
        return TICK_KILL;
    }
    if (mistaken_makes(queue->scheduler, queue->now, MISTAKE_STARVED))
        return TICK_CONTINUE;
    return mistaken_turn_is_over(queue, task) ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION enum tick_verdict mistaken_turn_over(run_queue_t *queue, task_t *task)
{
    (void)queue, (void)task;
    return TICK_KILL;
}

POLICY_FUNCTION uint64_t mistaken_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return !mistaken_makes(scheduler, scheduler->queue[0]->now, MISTAKE_SLICE);
}

POLICY_FUNCTION uint32_t mistaken_place(const scheduler_t *scheduler, const task_t *task,
                                        enum enqueue_reason reason)
{
    (void)task, (void)reason;
    if (mistaken_makes(scheduler, scheduler->queue[0]->now, MISTAKE_CPU))
        return 1000;
    if (mistaken_makes(scheduler, scheduler->queue[0]->now, MISTAKE_PLACE))
        return scheduler->queues - 1;
    return 0;
}

POLICY_DEFINITION policy_mistaken = {
    .name = "mistaken",
    .meaning = "round-robin with a mistake",
    .source = "a test",
    .order = "The task that came first is next.",
    .tunables = mistaken_tunables,
    .tunable_count = sizeof(mistaken_tunables) / sizeof(mistaken_tunables[0]),
    .speaks = true,
    .rounds = 2,
    .task_bytes = sizeof(struct mistaken_task),
    .scheduler_init = mistaken_scheduler_init,
    .overtakes = mistaken_overtakes,
    .enqueue = mistaken_enqueue,
    .dequeue = mistaken_dequeue,
    .pick = mistaken_pick,
    .tick = mistaken_tick,
    .turn_over = mistaken_turn_over,
    .time_slice = mistaken_time_slice,
    .place = mistaken_place,
};
