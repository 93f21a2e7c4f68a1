/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_DRAWING_H
#define SCHEDLAB_DRAWING_H

#include "compensation.h"
#include "fair_shares.h"
#include "policy.h"
#include "random.h"
#include "ticket_tree.h"

/*
 * What lotteries share: what a task holds when it competes, and what it counts as when
 * CPUs are compared. How many tickets it is given, and how a winner is found, is the
 * policy's.
 *
 * A policy's queue state begins with a drawing_queue, its task state with a
 * drawing_task, its tunables with DRAWING_TUNABLES.
 */

enum { DRAWING_SLICE, DRAWING_HORIZON, DRAWING_COMPENSATION, DRAWING_TUNABLE_COUNT };

/* clang-format off */
#define DRAWING_TUNABLES                                                                           \
    [DRAWING_SLICE] = {"slice", "ticks that the winner of a draw runs", 1, 1, 1000},               \
    [DRAWING_HORIZON] = {"horizon", "ticks ahead for which fair shares are foreseen", 1, 16,       \
                         10000},                                                                   \
    [DRAWING_COMPENSATION] = {"compensation",                                                      \
                              "times its tickets that a task that blocks counts at most; 1: off",  \
                              1, 256, 1024}
/* clang-format on */

struct drawing_task {
    struct ticket_node node;    /* what it holds in draws, in units */
    struct share_member member; /* what it counts as when CPUs are compared */
    struct run_history history;
    uint64_t own;   /* its own tickets, in units, as long as it competes; else 0 */
    uint32_t ticks; /* used of the slice */
    bool fresh;     /* has not used up a turn since it woke */
    bool newcomer;  /* was never picked, for sources that ask */
};
typedef struct drawing_task SHARED_MEMORY drawing_task_t;

struct drawing_queue {
    struct share_queue shares;
    struct ticket_tree tree;
    uint64_t own; /* the own tickets of all that compete here, in units */
    uint64_t random;
    uint64_t ticked;     /* when the latest tick was */
    uint64_t drawn_from; /* tickets, while one of those that wait for the same thing is drawn */
};
typedef struct drawing_queue SHARED_MEMORY drawing_queue_t;

#define HISTORY_TICKS 64 /* of a task's life, which decide its compensation */
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
    state->random = random_splitmix(&state->random); /* seeds that are alike give unlike draws */
}

/* ---- compensation ---- */

POLICY_FUNCTION uint64_t drawing_window(const run_queue_t *queue)
{
    return HISTORY_TICKS * queue->scheduler->tick_ns;
}

/* The turn ends before its time, which would be a tick: the task was entitled to the rest. */
POLICY_FUNCTION void drawing_cut_short(const run_queue_t *queue, drawing_task_t *task)
{
    uint64_t ticks = (uint64_t)queue->scheduler->tunable[DRAWING_SLICE] - task->ticks;
    uint64_t end = drawing_queue_of(queue)->ticked + ticks * queue->scheduler->tick_ns;
    if (end > queue->now)
        task->history.cut_off = end - queue->now;
}

/* Until the next tick a task that wakes has no chance: that time counts as if it slept on. */
POLICY_FUNCTION void drawing_wake(const run_queue_t *queue, drawing_task_t *task)
{
    uint64_t next = drawing_queue_of(queue)->ticked + queue->scheduler->tick_ns;
    history_wake(&task->history, next > queue->now ? next : queue->now, drawing_window(queue));
}

/* Its own tickets, and more for a task that blocks, in units. */
POLICY_FUNCTION uint64_t drawing_compensated(const run_queue_t *queue, const drawing_task_t *task)
{
    uint64_t most = (uint64_t)queue->scheduler->tunable[DRAWING_COMPENSATION] * COMPENSATION_ONE;
    if (most == COMPENSATION_ONE || history_is_full(&task->history))
        return task->own;
    uint64_t others = drawing_queue_of(queue)->own - task->own;
    return task->own * history_compensation(&task->history, task->own, others, most) /
           COMPENSATION_ONE;
}

/*
 * What a task counts as when CPUs are compared. That is done at ticks, when tasks wake that
 * sleep for ticks: if they counted in full, a CPU with many of them would seem busy though it
 * has nothing to do most of the time. A task that competes for half of its life or more counts in
 * full, and so does one that has used up a turn since it woke: it may be long until it is queued
 * anew.
 */
POLICY_FUNCTION uint64_t drawing_usual(const run_queue_t *queue, const drawing_task_t *task)
{
    if (queue->scheduler->tunable[DRAWING_COMPENSATION] == 1 || !task->fresh)
        return task->own;
    uint64_t usual = task->own * 2 * history_part(&task->history) / COMPENSATION_ONE;
    usual = usual < task->own ? usual : task->own;
    return usual > 0 ? usual : 1;
}

/* ---- coming and going ---- */

/* The task is about to be queued here, and competes with `own` units. */
POLICY_FUNCTION void drawing_join(run_queue_t *queue, task_t *task, enum enqueue_reason reason,
                                  uint64_t own)
{
    drawing_task_t *entrant = drawing_task_of(task);
    if (reason == ENQUEUE_NEW || reason == ENQUEUE_ADOPTED || reason == ENQUEUE_WOKEN)
        drawing_wake(queue, entrant);
    if (reason == ENQUEUE_YIELDED)
        drawing_cut_short(queue, entrant);
    if (reason == ENQUEUE_WOKEN || reason == ENQUEUE_EXPIRED)
        entrant->fresh = reason == ENQUEUE_WOKEN;
    drawing_queue_of(queue)->own += own - entrant->own;
    entrant->own = own;
    shares_set_weight(queue, &entrant->member, drawing_usual(queue, entrant));
}

POLICY_FUNCTION void drawing_leave(run_queue_t *queue, task_t *task)
{
    drawing_task_t *state = drawing_task_of(task);
    drawing_queue_of(queue)->own -= state->own;
    state->own = 0;
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

/* Returns a task of the queue, whatever its tickets, that another CPU may have, or null if there is
 * none. */
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

/* Would a move to `cpu` make shares more even? */
POLICY_FUNCTION bool drawing_move_pays(run_queue_t *queue, const task_t *task, uint32_t cpu)
{
    return shares_move_pays(queue, &drawing_task_of(task)->member, cpu,
                            queue->scheduler->tunable[DRAWING_HORIZON]);
}

#endif
