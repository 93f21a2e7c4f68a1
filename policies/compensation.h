/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_COMPENSATION_H
#define SCHEDLAB_COMPENSATION_H

#include "policy.h"

/*
 * Compensation for tasks that block, after the compensation tickets of Waldspurger and Weihl 1994.
 * A task may block for part of its life, or yield before its turn ends. It still gets its share of
 * the CPU, if it asks for that much.
 *
 * A task is blocked or competes (is queued or runs). The history records how long it did each
 * recently; time older than a window counts half, again and again. So a task that sleeps for long
 * may run at once when it wakes, until it has had its part of the window. A task that has had four
 * times its part is not compensated.
 */
struct run_history {
    uint64_t away;      /* ns */
    uint64_t competing; /* ns */
    uint64_t ran;       /* ns */
    uint64_t turn;      /* ns of its latest turn */
    uint64_t cut_off;   /* ns missing at the end of that turn */
    uint64_t since;     /* until when the above counts */
    bool is_known;      /* `since` is known: any time may be the first one, 0 too */
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

/* Records that the task competes from time `now`, which may be slightly in the future. The task
 * is new or was blocked. */
POLICY_FUNCTION void history_wake(run_history_t *history, uint64_t now, uint64_t window)
{
    if (history->is_known && now > history->since)
        history->away += now - history->since;
    history->is_known = true;
    history->since = now;
    history_forget(history, window);
}

/* Records that the task leaves its CPU after a turn of `ran`. */
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

/* Returns true if the task always competes and uses its whole turns. */
POLICY_FUNCTION bool history_is_full(const run_history_t *history)
{
    return history->away == 0 && history->cut_off == 0;
}

/* Returns the fraction of its life that the task spends competing, in units of
 * 1/COMPENSATION_ONE; never 0. */
POLICY_FUNCTION uint64_t history_part(const run_history_t *history)
{
    uint64_t life = history->away + history->competing;
    uint64_t part = life > 0 ? history->competing * COMPENSATION_ONE / life : COMPENSATION_ONE;
    return part > 0 ? part : 1;
}

/*
 * Returns the factor for the task's weight w, in units of 1/COMPENSATION_ONE, against competing
 * weight `others`. With factor k, the task gets kw / (others + kw) of its competing time. It
 * competes for a fraction c of its life, so c times that must equal w / (others + w). A turn that
 * was cut short counts less, by the missing time, until the next turn. If no k suffices, the result
 * is `most`.
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
