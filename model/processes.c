/* SPDX-License-Identifier: MIT */

/*
 * The table of processes: the living ones, and ended ones with events in the window.
 *
 * A process keeps its slot as long as the window has an event of it; then another process may use
 * the slot.
 */

#include "model/inside.h"

/* ---- by PID: open addressing, at most half full ---- */

static uint32_t home_of(const struct model *model, uint32_t pid)
{
    return pid * 2654435769u >> (32 - model->places_bits);
}

static uint32_t next_place(const struct model *model, uint32_t place)
{
    return (place + 1) & ((1u << model->places_bits) - 1);
}

/* The hash table contains slots plus 1; 0: free. */
static uint32_t place_of(const struct model *model, uint32_t pid)
{
    const uint32_t *places = places_of(model);
    uint32_t place = home_of(model, pid);
    while (places[place] != 0 && process_of(model, places[place] - 1)->pid != pid)
        place = next_place(model, place);
    return place;
}

uint32_t process_find(const struct model *model, uint32_t pid)
{
    return places_of(model)[place_of(model, pid)] - 1; /* 0 becomes NONE */
}

/* Returns true if the entry at `place` can be found even if the entry `hole` becomes free. */
static bool stays(const struct model *model, uint32_t hole, uint32_t place)
{
    uint32_t mask = (1u << model->places_bits) - 1;
    uint32_t home = home_of(model, process_of(model, places_of(model)[place] - 1)->pid);
    return ((place - home) & mask) < ((place - hole) & mask);
}

static void forget_pid(struct model *model, uint32_t pid)
{
    uint32_t *places = places_of(model);
    uint32_t hole = place_of(model, pid);
    for (uint32_t place = next_place(model, hole); places[place] != 0;
         place = next_place(model, place)) {
        if (stays(model, hole, place))
            continue;
        places[hole] = places[place];
        hole = place;
    }
    places[hole] = 0;
}

/* ---- slots ---- */

bool processes_full(const struct model *model)
{
    return model->free_slot == NONE && model->slots == model->slots_max;
}

static uint32_t free_slot(struct model *model)
{
    uint32_t slot = model->free_slot;
    if (slot != NONE) {
        model->free_slot = process_of(model, slot)->next;
        return slot;
    }
    return model->slots < model->slots_max ? model->slots++ : NONE;
}

static struct process inherited(const struct process *parent)
{
    struct process process = {.slice = -1,
                              .priority = PRIORITY_DEFAULT,
                              .tickets = TICKETS_DEFAULT,
                              .weight = WEIGHT_DEFAULT};
    if (!parent)
        return process;
    process.parent = parent->pid;
    process.named = parent->named;
    process.label = parent->label;
    process.slice = parent->slice;
    process.priority = parent->priority;
    process.tickets = parent->tickets;
    process.weight = parent->weight;
    process.attributes = parent->attributes;
    for (uint32_t i = 0; i < ATTRIBUTE_KINDS; i++)
        process.attribute[i] = parent->attribute[i];
    process.kin = parent->kin;
    return process;
}

uint32_t process_take(struct model *model, uint32_t pid, int64_t time, uint32_t parent)
{
    uint32_t slot = free_slot(model);
    if (slot == NONE)
        return NONE;
    const struct process *from = parent == NONE ? NULL : process_of(model, parent);
    struct process *process = process_of(model, slot);
    *process = inherited(from);
    process->pid = pid;
    process->serial = ++model->serials;
    process->used = process->living = true;
    process->since = process->wait_since = process->picked_at = process->born_at = time;
    process->woken_at = process->forked_at = -1;
    process->exit_at = process->removed_at = NEVER;
    process->share_tickets = TICKETS_DEFAULT;
    process->share_weight = WEIGHT_DEFAULT;
    process->share_nice = NICE_DEFAULT;
    process->cpu = -1;
    process->next = process->previous = NONE;
    process->place = model->living;
    living_of(model)[model->living++] = slot;
    if (process->named)
        *name_of(model, slot) = *name_of(model, parent);
    places_of(model)[place_of(model, pid)] = slot + 1;
    return slot;
}

/* Handles that a process has left its CPU for the last time. */
void process_bury(struct model *model, uint32_t slot, int64_t time)
{
    struct process *process = process_of(model, slot);
    forget_pid(model, process->pid);
    uint32_t *living = living_of(model);
    uint32_t last = living[--model->living];
    living[process->place] = last;
    process_of(model, last)->place = process->place;
    process->living = false;
    process->removed_at = time;
    process->exit_at = earlier(process->exit_at, time);
    process->next = NONE;
    if (model->ended_first == NONE)
        model->ended_first = slot;
    else
        process_of(model, model->ended_last)->next = slot;
    model->ended_last = slot;
}

/* Frees the slots of processes that ended before the window began. */
void processes_expire(struct model *model)
{
    while (model->ended_first != NONE) {
        uint32_t slot = model->ended_first;
        struct process *process = process_of(model, slot);
        if (process->removed_at >= model->begin)
            return;
        model->ended_first = process->next;
        process->used = false;
        process->next = model->free_slot;
        model->free_slot = slot;
    }
}

const uint32_t *processes_sort(struct model *model)
{
    uint32_t *living = living_of(model);
    struct sortable *rows = scratch_of(model);
    for (uint32_t i = 0; i < model->living; i++)
        rows[i] = (struct sortable){.key = process_of(model, living[i])->pid, .index = living[i]};
    sort(rows, rows + model->living, model->living);
    for (uint32_t i = 0; i < model->living; i++) {
        living[i] = rows[i].index;
        process_of(model, living[i])->place = i;
    }
    return living;
}

/* ---- the monitor's own processes ---- */

void model_own(struct model *model, const uint32_t *pids, size_t count)
{
    int64_t *sorted = scratch_of(model);
    model->monitor_count = count < MONITOR_PIDS_MAX ? (uint32_t)count : MONITOR_PIDS_MAX;
    for (uint32_t i = 0; i < model->monitor_count; i++)
        sorted[i] = pids[i];
    sort_numbers(sorted, sorted + model->monitor_count, model->monitor_count);
    for (uint32_t i = 0; i < model->monitor_count; i++)
        model->monitor_pids[i] = (uint32_t)sorted[i];
}

bool is_monitor(const struct model *model, uint32_t pid)
{
    uint32_t low = 0, high = model->monitor_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (model->monitor_pids[middle] < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < model->monitor_count && model->monitor_pids[low] == pid;
}

bool is_of_the_kernel(const struct model *model, uint32_t slot)
{
    const struct text *name = name_of(model, slot);
    return process_of(model, slot)->named && name->bytes > 0 && name->byte[0] == '[';
}

void process_called(struct model *model, uint32_t slot, const struct text *name)
{
    struct process *process = process_of(model, slot);
    *name_of(model, slot) = *name;
    process->named = true;
    if (model->in_the_middle)
        process->outside = process->began || is_of_the_kernel(model, slot);
}
