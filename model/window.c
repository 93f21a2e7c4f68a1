/* SPDX-License-Identifier: MIT */

/*
 * What the window contains. Rows are removed when they are older than the window.
 *
 * Sums are kept up to date: a row is added when it ends, and subtracted when it is removed. The
 * clocks of CPUs differ, so a row may be older than rows before it. It then stays until those are
 * removed, and readers check its time.
 */

#include "model/inside.h"

static void count_spell(struct model *model, const struct spell *spell, int64_t duration)
{
    struct process *process = process_of(model, spell->slot);
    bool is_its = is_of(process, spell->serial);
    if (is_its && spell->kind == WAIT)
        process->waited_in_window += duration;
    if (is_its && spell->kind == RUN)
        process->ran_in_window += duration;
    if (spell->kind == RUN)
        cpu_of(model, spell->cpu)->busy += duration;
}

static void spell_forget(struct model *model, const struct spell *spell)
{
    count_spell(model, spell, spell->begin - spell->end);
}

static void forget_spells(struct model *model, uint32_t count)
{
    for (; count > 0; count--) {
        const struct spell *spell = row_of(model, &model->spells, model->spells.first++);
        spell_forget(model, spell);
        model->forgotten_until = later(model->forgotten_until, spell->end);
    }
}

/* Removes rows, because the window has become shorter. */
static void forget(struct model *model, struct list *list)
{
    uint32_t count = list->capacity / 4;
    if (list == &model->spells) {
        forget_spells(model, count);
        return;
    }
    for (; count > 0; count--) {
        const struct moment *moment = row_of(model, list, list->first++);
        model->forgotten_until = later(model->forgotten_until, moment->time + 1);
    }
}

/* Returns memory for one more row. If the list is full, removes its oldest quarter. */
static void *window_add(struct model *model, struct list *list)
{
    if (list->last == list->capacity && list->first < list->capacity / 4)
        forget(model, list);
    return list_add(model, list);
}

static void draw_run(struct model *model, const struct spell *spell)
{
    if (list_count(&model->fresh) == model->fresh.capacity)
        drawing_settle(model);
    *(struct drawn *)list_add(model, &model->fresh) = (struct drawn){
        .begin = spell->begin,
        .end = spell->end,
        .waited = process_of(model, spell->slot)->waited,
        .pid = process_of(model, spell->slot)->pid,
        .level = spell->level,
        .cpu = spell->cpu,
        .how = spell->detail,
    };
}

void spell_add(struct model *model, uint32_t slot, enum spell_kind kind, uint32_t cpu,
               uint8_t detail, int64_t begin, int64_t end)
{
    const struct process *process = process_of(model, slot);
    struct spell *spell = window_add(model, &model->spells);
    *spell = (struct spell){
        .begin = begin,
        .end = end,
        .slot = slot,
        .serial = (uint32_t)process->serial,
        .level = process->level,
        .cpu = (uint16_t)cpu,
        .kind = (uint8_t)kind,
        .detail = detail,
    };
    model->spells_unsettled++;
    count_spell(model, spell, end - begin);
    if (kind == RUN && end > begin)
        draw_run(model, spell);
}

void happen(struct model *model, enum moments what, int64_t time, int64_t value, uint32_t slot)
{
    *(struct moment *)window_add(model, &model->happened[what]) =
        (struct moment){.time = time,
                        .value = value,
                        .slot = slot,
                        .serial = (uint32_t)process_of(model, slot)->serial};
}

static void expire_spells(struct model *model)
{
    struct list *list = &model->spells;
    while (list_count(list) > 0) {
        const struct spell *spell = row_of(model, list, list->first);
        if (spell->end > model->begin)
            break;
        spell_forget(model, spell);
        list->first++;
    }
    list_tidy(model, list);
}

void visit_add(struct model *model, uint32_t cpu, int64_t begin, int64_t end, int64_t cycles)
{
    struct moment *visit = window_add(model, &model->happened[VISITS]);
    *visit = (struct moment){.time = begin, .value = cycles};
    visit->cpu = (uint16_t)cpu;
    visit->duration = (uint64_t)later(end - begin, 0) & UINT64_C(0xffffffffffff);
}

static void expire_moments(struct model *model, struct list *list)
{
    bool visits = list == &model->happened[VISITS];
    while (list_count(list) > 0) {
        const struct moment *moment = row_of(model, list, list->first);
        if (moment->time + (visits ? (int64_t)moment->duration : 0) >= model->begin)
            break;
        list->first++;
    }
    list_tidy(model, list);
}

void window_expire(struct model *model)
{
    int64_t begin = later(model->begin, model->now - model->window);
    model->begin = later(begin, model->forgotten_until);
    expire_spells(model);
    for (uint32_t i = 0; i < MOMENTS; i++)
        expire_moments(model, &model->happened[i]);
}

void model_set_window(struct model *model, int64_t window)
{
    model->window = earlier(later(window, 0), TIME_MAX);
}
