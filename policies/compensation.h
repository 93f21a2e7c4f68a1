/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_COMPENSATION_H
#define SCHEDLAB_COMPENSATION_H

#include "policy.h"

/*
 * Compensation for tasks that block, after the compensation tickets of Waldspurger and
 * Weihl 1994: a task that is away for a part of its life, or gives up its CPU before its turn
 * ends, gets its share of the CPU nevertheless, as long as it asks for as much.
 *
 * A task is away (blocked) or competes (is queued or runs). The history says how long it did
 * each of them lately: beyond a window the past counts half, again and again. So a task that
 * sleeps for long may run at once when it wakes, until it has had its part of the window; a task
 * that had four times its part is not compensated.
 */
struct run_history {
    uint64_t away;      /* ns */
    uint64_t competing; /* ns */
    uint64_t ran;       /* ns */
    uint64_t turn;      /* ns that its latest turn took */
    uint64_t cut_off;   /* ns that were missing at the end of that turn */
    uint64_t since;     /* until when the above counts */
    bool begun;         /* `since` is known: any time may be the first one, 0 too */
};
typedef struct run_history SHARED_MEMORY run_history_t;

#define COMPENSATION_ONE 1024 /* a factor of 1 */

POLICY_FUNCTION void history_forget(run_history_t *history, uint64_t window)
{
    while (history->away + history->competing > window && LOOP_GUARD) {
        history->away /= 2;
        history->competing /= 2;
        history->ran /= 2;
    }
}

/* The task, which is new or was away, competes from `now` on (which may be a little ahead). */
POLICY_FUNCTION void history_wake(run_history_t *history, uint64_t now, uint64_t window)
{
    if (history->begun && now > history->since)
        history->away += now - history->since;
    history->begun = true;
    history->since = now;
    history_forget(history, window);
}

/* The task leaves its CPU after a turn of `ran`. */
POLICY_FUNCTION void history_stop(run_history_t *history, uint64_t now, uint64_t ran,
                                  uint64_t window)
{
    if (now > history->since) {
        history->competing += now - history->since;
        history->since = now;
    }
    history->ran += ran;
    history->turn = ran;
    history->cut_off = 0;
    history_forget(history, window);
}

/* Returns true if the task always competes, and uses its turns. */
POLICY_FUNCTION bool history_is_full(const run_history_t *history)
{
    return history->away == 0 && history->cut_off == 0;
}

/* The part of its life in which the task competes, in parts of COMPENSATION_ONE; never 0. */
POLICY_FUNCTION uint64_t history_part(const run_history_t *history)
{
    uint64_t life = history->away + history->competing;
    uint64_t part = life > 0 ? history->competing * COMPENSATION_ONE / life : COMPENSATION_ONE;
    return part > 0 ? part : 1;
}

/*
 * How often the task's weight w must count, in parts of COMPENSATION_ONE, where `others` compete,
 * too. Times k, it gets kw / (others + kw) of the time in which it competes, a part c of its life;
 * c times that is to be w / (others + w). A turn that was cut short counts less, until the
 * next one, by as much as it was shorter. If no k is enough, it is `most`.
 */
POLICY_FUNCTION uint64_t history_compensation(const run_history_t *history, uint64_t weight,
                                              uint64_t others, uint64_t most)
{
    uint64_t life = history->away + history->competing;
    if (history->ran >= 4 * (life / (others + weight) * weight))
        return COMPENSATION_ONE;
    uint64_t part = history_part(history);
    uint64_t missed = weight * (COMPENSATION_ONE - part);
    uint64_t times = most;
    if (others * part > missed)
        times = others * COMPENSATION_ONE * COMPENSATION_ONE / (others * part - missed);
    times = times < most ? times : most;
    if (history->turn > 0)
        times = times * (history->turn + history->cut_off) / history->turn;
    return times < most ? times : most;
}

#endif
