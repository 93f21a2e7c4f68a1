/* SPDX-License-Identifier: MIT */

/* What the story has written down is put away, and what the window has left is let go. */

#include "model/inside.h"

void settle(struct model *model)
{
    if (!model->has_begun)
        return;
    model->now = later(model->now, model->clock);
    idle_search(model, model->now);
    drawing_settle(model);
    model->spells_unsettled = 0;
    window_expire(model);
    processes_expire(model);
}

/* The processes that ended first give way, and with them what the window knows of that time. */
void settle_for_room(struct model *model)
{
    if (!processes_full(model) || model->ended_first == NONE)
        return;
    int64_t gone = process_of(model, model->ended_first)->gone_at;
    model->forgotten_until = later(model->forgotten_until, gone + 1);
    settle(model);
}
