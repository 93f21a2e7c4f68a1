/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Hybrid: priority levels, and a lottery within each. A task of a higher level (a lower number)
 * gets all the CPU that it asks for, at once; tasks of the same level share by tickets. Study 1
 * proposes it (section 8.3) and did not build it.
 *
 * Each CPU has a tree of tickets for each level (ticket_tree.h) and a bitmap of the levels with
 * waiting tasks. So finding the level is O(1), and the draw O(log n) in the tasks of that level.
 * Levels are strict over all CPUs, except for a tick (level_cpus.h).
 *
 * With `inherit`, a task is served at a higher level while others wait for it, or while it has a
 * lock (inheritance.h).
 */

#include "inheritance.h"
#include "level_cpus.h"
#include "level_lists.h"
#include "policy.h"
#include "random.h"
#include "ticket_tree.h"

#define LEVELS (PRIORITY_LOWEST + 1)

enum { HYBRID_SLICE, HYBRID_INHERIT };

static const struct tunable hybrid_tunables[] = {
    [HYBRID_SLICE] = {"slice", "ticks that the winner of a draw runs", 1, 1, 1000},
    [HYBRID_INHERIT] = {"inherit", INHERIT_MEANING, 0, INHERIT_NOTHING, INHERITANCES - 1},
};

struct hybrid_task {
    struct ticket_node node;
    uint32_t ticks; /* used of the slice */
};

struct hybrid_queue {
    struct level_counts counts; /* a level's rank is its number */
    struct ticket_tree level[LEVELS];
    uint64_t random;
};

_Static_assert(sizeof(struct hybrid_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct hybrid_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(LEVELS <= RANKS_MAX, "each level has a rank");

typedef struct hybrid_queue SHARED_MEMORY hybrid_queue_t;

POLICY_FUNCTION void hybrid_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    hybrid_queue_t *state = STATE_OF(queue, struct hybrid_queue);
    (void)reason;
    task->level = (uint64_t)inherited_priority(task);
    ticket_tree_insert(&state->level[task->level], task, task->tickets);
    level_counts_add(&state->counts, (uint32_t)task->level, 1);
}

POLICY_FUNCTION void hybrid_dequeue(run_queue_t *queue, task_t *task)
{
    hybrid_queue_t *state = STATE_OF(queue, struct hybrid_queue);
    ticket_tree_remove(&state->level[task->level], task);
    level_counts_remove(&state->counts, (uint32_t)task->level, 1);
}

/* Returns the tickets of the tasks of a level that may run on `cpu`. */
POLICY_FUNCTION uint64_t hybrid_tickets(run_queue_t *queue, uint32_t level, uint32_t cpu)
{
    ticket_tree_t *tree = &STATE_OF(queue, struct hybrid_queue)->level[level % LEVELS];
    return queue_bars(queue, cpu) ? ticket_tree_total_on(tree, cpu) : ticket_tree_total(tree);
}

/* Returns the highest level with a waiting task that may run on `cpu`, or NO_RANK. */
POLICY_RARE_FUNCTION uint32_t hybrid_highest_on(run_queue_t *queue, uint32_t cpu)
{
    uint32_t levels = (uint32_t)LOOP_START(level_counts_of(queue)->occupied);
    while (levels && hybrid_tickets(queue, (uint32_t)__builtin_ctz(levels), cpu) == 0 && LOOP_GUARD)
        levels &= levels - 1;
    return levels ? (uint32_t)__builtin_ctz(levels) : NO_RANK;
}

/* Draws a winner among the tasks of the highest level that may run on `cpu`, and takes it out. */
POLICY_FUNCTION task_t *hybrid_draw(run_queue_t *queue, uint32_t cpu)
{
    hybrid_queue_t *state = STATE_OF(queue, struct hybrid_queue);
    bool bars = queue_bars(queue, cpu);
    uint32_t level = bars ? hybrid_highest_on(queue, cpu) : level_first(&state->counts);
    if (level == NO_RANK)
        return NULL;
    ticket_tree_t *tree = &state->level[level % LEVELS];
    uint64_t total = hybrid_tickets(queue, level, cpu);
    uint64_t ticket = total > 0 ? random_splitmix(&state->random) % total : 0;
    task_t *winner =
        bars ? ticket_tree_holder_on(tree, ticket, cpu) : ticket_tree_holder(tree, ticket);
    if (winner)
        hybrid_dequeue(queue, winner);
    queue->remark = ticket;
    return winner;
}

POLICY_FUNCTION task_t *hybrid_pick(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = hybrid_draw(queue, cpu);
    if (task) {
        STATE_OF(task, struct hybrid_task)->ticks = 0;
        level_counts_of(queue)->running = (uint32_t)task->level;
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
    level_counts_of(queue)->running = NO_RANK;
}

POLICY_FUNCTION void hybrid_scheduler_init(scheduler_t *scheduler)
{
    scheduler->follows_waits = scheduler->tunable[HYBRID_INHERIT] != 0;
}

/* Updates the level of a running task; any other task gets its level when it is queued. */
POLICY_FUNCTION bool hybrid_waiters_changed(run_queue_t *queue, task_t *owner)
{
    level_counts_t *counts = level_counts_of(queue);
    bool changed = inherit_priority(owner, queue->scheduler->tunable[HYBRID_INHERIT]);
    if (!changed || owner != queue->current)
        return changed;
    owner->level = (uint64_t)inherited_priority(owner);
    counts->running = (uint32_t)owner->level;
    return level_first(counts) < counts->running;
}

POLICY_FUNCTION bool hybrid_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    (void)queue;
    return inherited_priority(task) < inherited_priority(running);
}

POLICY_FUNCTION void hybrid_queue_init(run_queue_t *queue)
{
    level_queue_init(queue);
    STATE_OF(queue, struct hybrid_queue)->random =
        queue->scheduler->seed + ((uint64_t)queue->cpu << 32);
}

POLICY_FUNCTION uint64_t hybrid_level(const scheduler_t *scheduler, const task_t *task,
                                      uint64_t now)
{
    (void)scheduler, (void)now;
    return (uint64_t)task->priority;
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
    .order = "The highest priority at which a task waits is served; within it, a lot decides.",
    .levels = "A task's level is its priority; level 0 is served first.",
    .remark = "ticket {}",
    .level_order = LEVELS_LOWEST_FIRST,
    .remark_kind = REMARK_TICKET,
    .priorities = PRIORITIES_PREEMPT,
    .reads = "priority tickets",
    .tunables = hybrid_tunables,
    .tunable_count = sizeof(hybrid_tunables) / sizeof(hybrid_tunables[0]),
    .task_bytes = sizeof(struct hybrid_task),
    .enqueue = hybrid_enqueue,
    .dequeue = hybrid_dequeue,
    .pick = hybrid_pick,
    .tick = hybrid_tick,
    .time_slice = hybrid_time_slice,
    .scheduler_init = hybrid_scheduler_init,
    .queue_init = hybrid_queue_init,
    .stopped = hybrid_stopped,
    .waiters_changed = hybrid_waiters_changed,
    .preempts = hybrid_preempts,
    .place = place_by_level,
    .balance = balance_by_level,
    .steal = hybrid_draw,
    .shares_by = hybrid_shares_by,
    .level = hybrid_level,
};
