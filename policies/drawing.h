/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_DRAWING_H
#define SCHEDLAB_DRAWING_H

#include "compensation.h"
#include "fair_shares.h"
#include "policy.h"
#include "random.h"
#include "ticket_tree.h"

/*
 * The common part of lotteries: a competing task's tickets, and its weight when CPUs are compared.
 * The policy decides how many tickets a task gets, and how a winner is found.
 *
 * A policy's queue state begins with a drawing_queue, its task state with a drawing_task, its
 * tunables with DRAWING_TUNABLES.
 */

enum { DRAWING_SLICE, DRAWING_HORIZON, DRAWING_COMPENSATION, DRAWING_TUNABLE_COUNT };

/* clang-format off */
#define DRAWING_TUNABLES                                                                           \
    [DRAWING_SLICE] = {"slice", "ticks that the winner of a draw runs", 1, 1, 1000},               \
    [DRAWING_HORIZON] = {"horizon", "ticks that the balance of shares looks ahead", 1, 16,       \
                         10000},                                                                   \
    [DRAWING_COMPENSATION] = {"compensation",                                                      \
                              "largest factor for the tickets of a task that blocks; 1: off",  \
                              1, 256, 1024}
/* clang-format on */

struct drawing_task {
    struct ticket_node node;    /* its tickets in draws, in units */
    struct share_member member; /* its weight when CPUs are compared */
    struct run_history history;
    uint64_t base_units; /* its own tickets, in units, while it competes; else 0 */
    uint32_t ticks;      /* used of the slice */
    bool fresh;          /* has not used up a turn since it woke */
    bool newcomer;       /* never picked; for sources that ask */
};
typedef struct drawing_task SHARED_MEMORY drawing_task_t;

struct drawing_queue {
    struct share_queue shares;
    struct ticket_tree tree;
    uint64_t base_units; /* the own tickets of all tasks that compete here, in units */
    uint64_t random;
    uint64_t ticked;     /* time of the latest tick */
    uint64_t drawn_from; /* tickets, during a draw among tasks that wait for the same lock or
                          * channel */
};
typedef struct drawing_queue SHARED_MEMORY drawing_queue_t;

#define HISTORY_TICKS 64 /* of a task's life; they determine its compensation */
#define SCALE         64 /* units of a ticket, where tickets are multiplied */

POLICY_FUNCTION drawing_task_t *drawing_task_of(const task_t *task)
{
    return STATE_OF(task, struct drawing_task);
}

POLICY_FUNCTION drawing_queue_t *drawing_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct drawing_queue);
}

/* A hook. */
POLICY_FUNCTION void drawing_queue_init(run_queue_t *queue)
{
    drawing_queue_t *state = drawing_queue_of(queue);
    uint64_t seed = queue->scheduler->seed + ((uint64_t)queue->cpu << 32);
    state->ticked = queue->now - queue->scheduler->tick_ns; /* no turn is cut short before a tick */
    state->random = seed;
    state->random = random_splitmix(&state->random); /* similar seeds must give different draws */
}

/* ---- compensation ---- */

POLICY_FUNCTION uint64_t drawing_window(const run_queue_t *queue)
{
    return HISTORY_TICKS * queue->scheduler->tick_ns;
}

/* Handles a turn that ends early, before a tick: the task was entitled to the rest. */
POLICY_FUNCTION void drawing_cut_short(const run_queue_t *queue, drawing_task_t *task)
{
    uint64_t ticks = (uint64_t)queue->scheduler->tunable[DRAWING_SLICE] - task->ticks;
    uint64_t end = drawing_queue_of(queue)->ticked + ticks * queue->scheduler->tick_ns;
    if (end > queue->now)
        task->history.cut_off = end - queue->now;
}

/* Handles a wake-up. A task that wakes has no chance until the next tick, so that time counts as
 * sleep. */
POLICY_FUNCTION void drawing_wake(const run_queue_t *queue, drawing_task_t *task)
{
    uint64_t next = drawing_queue_of(queue)->ticked + queue->scheduler->tick_ns;
    history_wake(&task->history, next > queue->now ? next : queue->now, drawing_window(queue));
}

/* Returns its own tickets, in units, plus compensation if the task blocks. */
POLICY_FUNCTION uint64_t drawing_compensated(const run_queue_t *queue, const drawing_task_t *task)
{
    uint64_t most = (uint64_t)queue->scheduler->tunable[DRAWING_COMPENSATION] * COMPENSATION_ONE;
    if (most == COMPENSATION_ONE || history_is_full(&task->history))
        return task->base_units;
    uint64_t others = drawing_queue_of(queue)->base_units - task->base_units;
    return task->base_units * history_compensation(&task->history, task->base_units, others, most) /
           COMPENSATION_ONE;
}

/*
 * Returns the task's weight when CPUs are compared. CPUs are compared at ticks, which is also when
 * tasks wake that sleep for ticks. If those counted in full, a CPU with many of them would seem
 * busy although it is mostly idle. A task counts in full if it competes for at least half of its
 * life, or has used up a turn since it woke. In the second case it may not be queued again for a
 * long time.
 */
POLICY_FUNCTION uint64_t drawing_usual(const run_queue_t *queue, const drawing_task_t *task)
{
    if (queue->scheduler->tunable[DRAWING_COMPENSATION] == 1 || !task->fresh)
        return task->base_units;
    uint64_t usual = task->base_units * 2 * history_part(&task->history) / COMPENSATION_ONE;
    usual = usual < task->base_units ? usual : task->base_units;
    return usual > 0 ? usual : 1;
}

/* ---- arrival and departure ---- */

/* Prepares a task that is about to be queued here and competes with `base_units` units. */
POLICY_FUNCTION void drawing_join(run_queue_t *queue, task_t *task, enum enqueue_reason reason,
                                  uint64_t base_units)
{
    drawing_task_t *entrant = drawing_task_of(task);
    if (reason == ENQUEUE_NEW || reason == ENQUEUE_ADOPTED || reason == ENQUEUE_WOKEN)
        drawing_wake(queue, entrant);
    if (reason == ENQUEUE_YIELDED)
        drawing_cut_short(queue, entrant);
    if (reason == ENQUEUE_WOKEN || reason == ENQUEUE_EXPIRED)
        entrant->fresh = reason == ENQUEUE_WOKEN;
    drawing_queue_of(queue)->base_units += base_units - entrant->base_units;
    entrant->base_units = base_units;
    shares_set_weight(queue, &entrant->member, drawing_usual(queue, entrant));
}

POLICY_FUNCTION void drawing_leave(run_queue_t *queue, task_t *task)
{
    drawing_task_t *state = drawing_task_of(task);
    drawing_queue_of(queue)->base_units -= state->base_units;
    state->base_units = 0;
    shares_leave(queue, &state->member);
}

/* A hook. */
POLICY_FUNCTION void drawing_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    drawing_task_t *state = drawing_task_of(task);
    history_stop(&state->history, queue->now, queue->now - task->picked_since,
                 drawing_window(queue));
    if (reason == STOP_BLOCKED)
        drawing_cut_short(queue, state);
    if (reason != STOP_RUNNABLE)
        drawing_leave(queue, task);
}

/* A hook. */
POLICY_FUNCTION enum tick_verdict drawing_tick(run_queue_t *queue, task_t *task)
{
    drawing_task_t *state = drawing_task_of(task);
    shares_tick(queue);
    drawing_queue_of(queue)->ticked = queue->now;
    state->ticks++;
    return state->ticks >= queue->scheduler->tunable[DRAWING_SLICE] ? TICK_PREEMPT : TICK_CONTINUE;
}

/* A hook. */
POLICY_FUNCTION uint64_t drawing_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    (void)task;
    return (uint64_t)scheduler->tunable[DRAWING_SLICE];
}

/* Returns any task of the queue regardless of its tickets, or null. */
POLICY_FUNCTION task_t *drawing_any(run_queue_t *queue, uint32_t cpu)
{
    drawing_queue_t *state = drawing_queue_of(queue);
    bool bars = queue_bars(queue, cpu);
    if (state->tree.count == 0 || (bars && !ticket_tree_any_on(&state->tree, 1, cpu)))
        return NULL;
    uint64_t position = 1 + random_splitmix(&state->random) % state->tree.count;
    return bars ? ticket_tree_any_on(&state->tree, position, cpu)
                : ticket_tree_at(&state->tree, position);
}

/* Returns true if a move to `cpu` would make shares more even. */
POLICY_FUNCTION bool drawing_move_pays(run_queue_t *queue, const task_t *task, uint32_t cpu)
{
    return shares_move_pays(queue, &drawing_task_of(task)->member, cpu,
                            queue->scheduler->tunable[DRAWING_HORIZON]);
}

#endif
