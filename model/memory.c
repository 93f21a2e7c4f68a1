/* SPDX-License-Identifier: MIT */

/* One range of memory, divided once. */

#include "model/inside.h"

#define DRAWN_MAX 131072
#define PAST_MAX  163840

static uint64_t take(uint64_t *used, uint64_t bytes)
{
    uint64_t begin = *used;
    *used = (begin + bytes + 15) & ~(uint64_t)15;
    return begin;
}

static void list_place(struct list *list, uint64_t *used, uint32_t row_bytes, uint64_t capacity)
{
    *list = (struct list){.row_bytes = row_bytes, .capacity = (uint32_t)capacity};
    list->at = take(used, capacity * row_bytes);
}

static uint32_t bits_for(uint32_t count)
{
    uint32_t bits = 4;
    while ((1u << bits) < count)
        bits++;
    return bits;
}

static void place_processes(struct model *model, uint64_t *used)
{
    uint32_t most = 65536;
    while (most > 8192 && (uint64_t)most * 4096 > model->bytes)
        most /= 2;
    model->slots_max = most;
    model->processes_at = take(used, (uint64_t)most * sizeof(struct process));
    model->names_at = take(used, (uint64_t)most * sizeof(struct text));
    model->living_at = take(used, (uint64_t)most * sizeof(uint32_t));
    model->places_bits = bits_for(2 * most);
    model->places_at = take(used, sizeof(uint32_t) << model->places_bits);
}

static void place_drawing(struct model *model, uint64_t *used)
{
    list_place(&model->fresh, used, sizeof(struct drawn), DRAWN_MAX);
    list_place(&model->fresh_idle, used, sizeof(struct stretch), DRAWN_MAX);
    list_place(&model->past, used, sizeof(struct drawn), PAST_MAX);
    list_place(&model->past_idle, used, sizeof(struct stretch), PAST_MAX);
    list_place(&model->occupancy, used, sizeof(struct occupancy), DRAWN_MAX);
    list_place(&model->idle, used, sizeof(struct stretch), DRAWN_MAX);
    uint64_t least = PAST_MAX * (2 * sizeof(struct sortable) + sizeof(struct drawn));
    model->scratch_bytes = least > model->bytes / 16 ? least : model->bytes / 16;
    model->scratch_at = take(used, model->scratch_bytes);
}

/* Events of each switch or wake-up get three times the capacity. */
static void place_moments(struct model *model, uint64_t *used, uint64_t bytes)
{
    static const uint8_t parts[MOMENTS] = {
        [TURNAROUNDS] = 1, [RESPONSES] = 1,  [LATENCIES] = 3,
        [WAKEUPS] = 3,     [MIGRATIONS] = 1, [SWITCHES] = 3,
        [VISITS] = 3,      [BATCHES] = 1,    [IDLE_WHILE_QUEUED] = 3,
    };
    uint64_t part = bytes / 19 / sizeof(struct moment) - 1;
    for (uint32_t i = 0; i < MOMENTS; i++)
        list_place(&model->happened[i], used, sizeof(struct moment), parts[i] * part);
}

/* The rest is for messages, and for the window's rows. */
bool memory_divide(struct model *model)
{
    uint64_t used = sizeof(struct model);
    model->cpus_at = take(&used, (uint64_t)model->header.cpus * sizeof(struct cpu));
    place_processes(model, &used);
    place_drawing(model, &used);
    if (used >= model->bytes / 4 * 3)
        return false;
    uint64_t part = (model->bytes - used) / 8 & ~(uint64_t)15;
    model->message_bytes = part < UINT32_MAX / 2 ? part : UINT32_MAX / 2;
    model->message_at = take(&used, model->message_bytes);
    list_place(&model->spells, &used, sizeof(struct spell), 2 * part / sizeof(struct spell));
    place_moments(model, &used, 5 * part);
    return used <= model->bytes;
}

static void move_to_begin(struct model *model, struct list *list)
{
    __builtin_memmove(row_of(model, list, 0), row_of(model, list, list->first),
                      (size_t)list_count(list) * list->row_bytes);
    list->last -= list->first;
    list->first = 0;
}

void *list_add(struct model *model, struct list *list)
{
    if (list->last == list->capacity)
        move_to_begin(model, list);
    return row_of(model, list, list->last++);
}

/* Moves the rows to the front, so that no more memory is used than there are rows. */
void list_tidy(struct model *model, struct list *list)
{
    if (list->first > list_count(list))
        move_to_begin(model, list);
}
