/* SPDX-License-Identifier: MIT */

/* Moves new events into the window, and removes rows that are older than the window. */

#include "model/inside.h"

void settle(struct model *model)
{
    if (!model->has_started)
        return;
    model->now = later(model->now, model->clock);
    idle_search(model, model->now);
    drawing_settle(model);
    model->spells_unsettled = 0;
    window_expire(model);
    processes_expire(model);
}

/* Frees memory: removes the processes that ended first, and the window's data of that time. */
void settle_for_room(struct model *model)
{
    if (!processes_full(model) || model->ended_first == NONE)
        return;
    int64_t removed_at = process_of(model, model->ended_first)->removed_at;
    model->forgotten_until = later(model->forgotten_until, removed_at + 1);
    settle(model);
}
