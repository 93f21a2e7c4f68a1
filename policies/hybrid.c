/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Hybrid: priority levels, and a lottery within each. What a task of a higher level
 * (a lower number) asks for it gets, at once; tasks of the same level share by
 * tickets. Study 1 proposes it (section 8.3) and did not build it.
 *
 * Each CPU has a tree of tickets for each level (ticket_tree.h) and a bitmap of the levels
 * where tasks wait. So finding the level is O(1), and the draw O(log n) in the tasks of
 * that level. Levels are strict over all CPUs, but for a tick: a CPU takes over
 * a task that waits elsewhere if it is of a higher level than the one that it runs.
 */

#include "placement.h"
#include "policy.h"
#include "random.h"
#include "ticket_tree.h"

#define LEVELS (PRIORITY_LOWEST + 1)

enum { HYBRID_SLICE };

static const struct tunable hybrid_tunables[] = {
    [HYBRID_SLICE] = {"slice", "ticks that the winner of a draw runs", 1, 1, 1000},
};

struct hybrid_task {
    struct ticket_node node;
    uint32_t ticks; /* of the slice, used */
};

struct hybrid_queue {
    struct ticket_tree level[LEVELS];
    uint64_t waiting; /* bit p: level p is not empty */
    uint64_t running; /* the level of the task that runs from here; LEVELS: none does */
    uint64_t random;
};

_Static_assert(sizeof(struct hybrid_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct hybrid_queue) <= POLICY_QUEUE_BYTES, "queue state fits");

typedef struct hybrid_queue SHARED_MEMORY hybrid_queue_t;

/* The highest level of those in the bitmap; LEVELS: it is empty. */
POLICY_FUNCTION uint64_t hybrid_highest(uint64_t waiting)
{
    return waiting ? (uint64_t)__builtin_ctzll(waiting) : LEVELS;
}

POLICY_FUNCTION void hybrid_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    hybrid_queue_t *state = STATE_OF(queue, struct hybrid_queue);
    (void)reason;
    task->level = (uint64_t)task->priority;
    ticket_tree_insert(&state->level[task->level], task, task->tickets);
    state->waiting |= 1ull << task->level;
}

POLICY_FUNCTION void hybrid_dequeue(run_queue_t *queue, task_t *task)
{
    hybrid_queue_t *state = STATE_OF(queue, struct hybrid_queue);
    ticket_tree_t *tree = &state->level[task->priority];
    ticket_tree_remove(tree, task);
    if (tree->count == 0)
        state->waiting &= ~(1ull << task->priority);
}

/* Takes out the winner among those of the highest level. */
POLICY_FUNCTION task_t *hybrid_draw(run_queue_t *queue)
{
    hybrid_queue_t *state = STATE_OF(queue, struct hybrid_queue);
    uint64_t highest = hybrid_highest(state->waiting);
    if (highest >= LEVELS)
        return NULL;
    ticket_tree_t *tree = &state->level[highest];
    uint64_t total = ticket_tree_total(tree);
    uint64_t ticket = total > 0 ? random_splitmix(&state->random) % total : 0;
    task_t *winner = ticket_tree_holder(tree, ticket);
    if (winner)
        hybrid_dequeue(queue, winner);
    queue->remark = ticket;
    return winner;
}

POLICY_FUNCTION task_t *hybrid_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = hybrid_draw(queue);
    (void)cpu;
    if (task) {
        STATE_OF(task, struct hybrid_task)->ticks = 0;
        STATE_OF(queue, struct hybrid_queue)->running = (uint64_t)task->priority;
    }
    return task;
}

POLICY_FUNCTION enum tick_verdict hybrid_tick(run_queue_t *queue, task_t *task)
{
    struct hybrid_task SHARED_MEMORY *state = STATE_OF(task, struct hybrid_task);
    state->ticks++;
    return state->ticks >= queue->scheduler->tunable[HYBRID_SLICE] ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION uint64_t hybrid_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[HYBRID_SLICE];
}

POLICY_FUNCTION void hybrid_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    (void)task, (void)reason;
    STATE_OF(queue, struct hybrid_queue)->running = LEVELS;
}

POLICY_FUNCTION bool hybrid_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    (void)queue;
    return task->priority < running->priority;
}

/* An idle CPU, or one where the task would run at once, or the one with the fewest tasks. */
POLICY_FUNCTION uint32_t hybrid_place(const scheduler_t *scheduler, const task_t *task,
                                      enum enqueue_reason reason)
{
    uint32_t fewest = place_fewest(scheduler, task);
    uint32_t lowest = NO_CPU;
    uint64_t lowest_level = (uint64_t)task->priority;
    (void)reason;
    if (queue_load(scheduler->queue[fewest]) == 0)
        return fewest;
    for (uint32_t cpu = 0; cpu < scheduler->queues && LOOP_GUARD; cpu++) {
        const hybrid_queue_t *state = STATE_OF(scheduler->queue[cpu], struct hybrid_queue);
        bool full = state->waiting != 0 && hybrid_highest(state->waiting) < state->running;
        if (!full && state->running > lowest_level) {
            lowest = cpu;
            lowest_level = state->running;
        }
    }
    return lowest == NO_CPU ? fewest : lowest;
}

/* From where a task of a higher level waits than `cpu` runs; else from the longest queue. */
POLICY_FUNCTION uint32_t hybrid_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    uint32_t found = NO_CPU;
    uint64_t highest = STATE_OF(scheduler->queue[cpu], struct hybrid_queue)->running;
    for (uint32_t other = 0; other < scheduler->queues && !idle && LOOP_GUARD; other++) {
        const hybrid_queue_t *state = STATE_OF(scheduler->queue[other], struct hybrid_queue);
        uint64_t waiting = hybrid_highest(state->waiting);
        /* If it is higher than what runs there, it is about to run there. */
        if (other != cpu && waiting < highest && waiting >= state->running) {
            found = other;
            highest = waiting;
        }
    }
    return found == NO_CPU ? balance_longest(scheduler, cpu, idle) : found;
}

POLICY_FUNCTION task_t *hybrid_steal(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    return hybrid_draw(queue);
}

POLICY_FUNCTION void hybrid_queue_init(run_queue_t *queue)
{
    hybrid_queue_t *state = STATE_OF(queue, struct hybrid_queue);
    state->running = LEVELS;
    state->random = queue->scheduler->seed + ((uint64_t)queue->cpu << 32);
}

POLICY_FUNCTION enum share_attribute hybrid_shares_by(const scheduler_t *scheduler)
{
    (void)scheduler;
    return SHARES_BY_TICKETS;
}

POLICY_DEFINITION policy_hybrid = {
    .name = "hybrid",
    .meaning = "strict priorities, and a lottery by tickets within each level",
    .source = "Waldspurger and Weihl 1994, within priority levels",
    .tunables = hybrid_tunables,
    .tunable_count = sizeof(hybrid_tunables) / sizeof(hybrid_tunables[0]),
    .enqueue = hybrid_enqueue,
    .dequeue = hybrid_dequeue,
    .pick = hybrid_pick,
    .tick = hybrid_tick,
    .time_slice = hybrid_time_slice,
    .queue_init = hybrid_queue_init,
    .stopped = hybrid_stopped,
    .preempts = hybrid_preempts,
    .place = hybrid_place,
    .balance = hybrid_balance,
    .steal = hybrid_steal,
    .shares_by = hybrid_shares_by,
};
