/* SPDX-License-Identifier: MIT */

/*
 * The runs of processes that the timeline shows: those since the last frame, and those of the last
 * minute.
 *
 * If there are more than a limit, time is divided into as many intervals as can be drawn. Runs on a
 * CPU that begin in the same interval become one run, with their total length and the name of the
 * longest.
 */

#include "model/inside.h"

#define PAST_NS    (60 * SECOND)
#define PAST_RUNS  20000
#define FRESH_RUNS 40000 /* if no frames are requested, at most twice this many runs are kept */

void draw_idle(struct model *model, const struct stretch *idle)
{
    if (list_count(&model->fresh_idle) == model->fresh_idle.capacity)
        drawing_settle(model);
    *(struct stretch *)list_add(model, &model->fresh_idle) = *idle;
}

/* ---- thinning of runs and of idle times ---- */

/* Rows sorted by CPU and, on each CPU, by their begin. */
struct thinning {
    struct model *model;
    struct list *list;
    struct sortable *order;
    struct sortable *spare;
    uint32_t cpus; /* that have any */
    int64_t begin;
    int64_t end;
    bool are_runs;
};

static struct drawn run_at(const struct thinning *thinning, uint32_t index)
{
    uint32_t place = thinning->list->first + index;
    if (thinning->are_runs)
        return *(const struct drawn *)row_of(thinning->model, thinning->list, place);
    const struct stretch *idle = row_of(thinning->model, thinning->list, place);
    return (struct drawn){.begin = idle->begin, .end = idle->end, .cpu = (uint16_t)idle->cpu};
}

/* Counts the rows of each CPU, and computes where its rows begin. */
static void place_by_cpu(struct thinning *thinning)
{
    struct model *model = thinning->model;
    uint32_t total = 0;
    for (uint32_t cpu = 0; cpu < model->header.cpus; cpu++)
        cpu_of(model, cpu)->until = 0;
    for (uint32_t i = 0; i < list_count(thinning->list); i++) {
        struct drawn run = run_at(thinning, i);
        cpu_of(model, run.cpu)->until++;
        thinning->begin = earlier(thinning->begin, run.begin);
        thinning->end = later(thinning->end, run.end);
    }
    for (uint32_t number = 0; number < model->header.cpus; number++) {
        struct cpu *cpu = cpu_of(model, number);
        thinning->cpus += cpu->until > 0;
        cpu->at = total;
        total += cpu->until;
        cpu->until = total;
    }
}

static void order_by_cpu(struct thinning *thinning)
{
    struct model *model = thinning->model;
    uint32_t begin = 0;
    place_by_cpu(thinning);
    for (uint32_t i = 0; i < list_count(thinning->list); i++) {
        struct drawn run = run_at(thinning, i);
        thinning->order[cpu_of(model, run.cpu)->at++] =
            (struct sortable){.key = run.begin, .index = i};
    }
    for (uint32_t cpu = 0; cpu < model->header.cpus; cpu++) {
        sort(thinning->order + begin, thinning->spare, cpu_of(model, cpu)->until - begin);
        begin = cpu_of(model, cpu)->until;
    }
}

/* Merges the rows of each interval, and writes the result to `remaining`. Returns its number of
 * rows. */
static uint32_t put_together(const struct thinning *thinning, uint32_t most,
                             struct drawn *remaining)
{
    int64_t stretches = most / thinning->cpus > 0 ? most / thinning->cpus : 1;
    int64_t width = later((thinning->end - thinning->begin + stretches - 1) / stretches, 1);
    uint32_t left = 0;
    int64_t longest = 0, stretch = -1;
    for (uint32_t i = 0; i < list_count(thinning->list); i++) {
        struct drawn run = run_at(thinning, thinning->order[i].index);
        int64_t column = (run.begin - thinning->begin) / width;
        bool first = left == 0 || column != stretch || run.cpu != remaining[left - 1].cpu;
        struct drawn *part = &remaining[first ? left++ : left - 1];
        if (first || run.end - run.begin > longest) {
            struct drawn one = first ? run : *part;
            longest = run.end - run.begin;
            *part = run;
            part->begin = one.begin;
            part->waited = one.waited;
        }
        part->end = run.end;
        part->how = run.how;
        stretch = column;
    }
    return left;
}

static void write_back(const struct thinning *thinning, const struct drawn *remaining,
                       uint32_t count)
{
    struct list *list = thinning->list;
    for (uint32_t i = 0; i < count; i++)
        thinning->order[i] = (struct sortable){.key = remaining[i].end, .index = i};
    sort(thinning->order, thinning->spare, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct drawn *run = &remaining[thinning->order[i].index];
        void *row = row_of(thinning->model, list, i);
        if (thinning->are_runs)
            *(struct drawn *)row = *run;
        else
            *(struct stretch *)row =
                (struct stretch){.begin = run->begin, .end = run->end, .cpu = run->cpu};
    }
    list->first = 0;
    list->last = count;
}

/* Merges rows until there are about `most`. Returns how many rows were merged away. */
static uint32_t thin(struct model *model, struct list *list, uint32_t most, bool are_runs)
{
    uint32_t count = list_count(list);
    if (count <= most)
        return 0;
    struct thinning thinning = {
        .model = model, .list = list, .begin = NEVER, .end = INT64_MIN, .are_runs = are_runs};
    thinning.order = scratch_of(model);
    thinning.spare = thinning.order + count;
    struct drawn *remaining = (struct drawn *)(thinning.spare + count);
    order_by_cpu(&thinning);
    uint32_t left = put_together(&thinning, most, remaining);
    write_back(&thinning, remaining, left);
    return count - left;
}

void drawing_settle(struct model *model)
{
    if (list_count(&model->fresh) > 2 * FRESH_RUNS)
        model->drawn_thinned += thin(model, &model->fresh, FRESH_RUNS, true);
    if (list_count(&model->fresh_idle) > 2 * FRESH_RUNS)
        thin(model, &model->fresh_idle, FRESH_RUNS, false);
}

/* ---- from fresh to past ---- */

static void append(struct model *model, struct list *to, const struct list *from)
{
    uint32_t count = list_count(from);
    if (to->last + count > to->capacity)
        to->last = to->first =
            0; /* cannot happen: the past was thinned, so it has room for all new rows */
    __builtin_memcpy(row_of(model, to, to->last), row_of(model, from, from->first),
                     (size_t)count * from->row_bytes);
    to->last += count;
}

static int64_t end_of_past(const struct model *model)
{
    int64_t end = INT64_MIN;
    for (uint32_t i = model->past.first; i < model->past.last; i++)
        end = later(end, ((const struct drawn *)row_of(model, &model->past, i))->end);
    return end;
}

/* Removes rows that ended before `begin`; the first two fields of every row are begin and end. */
static void drop_before(struct model *model, struct list *list, int64_t begin)
{
    uint32_t remaining = 0;
    for (uint32_t i = list->first; i < list->last; i++) {
        const int64_t *times = row_of(model, list, i);
        if (times[1] < begin)
            continue;
        if (remaining != i)
            __builtin_memcpy(row_of(model, list, remaining), times, list->row_bytes);
        remaining++;
    }
    list->first = 0;
    list->last = remaining;
}

uint32_t drawing_thin(struct model *model, uint32_t most)
{
    uint32_t thinned = model->drawn_thinned + thin(model, &model->fresh, most, true);
    model->drawn_thinned = 0;
    thin(model, &model->fresh_idle, most, false);
    return thinned;
}

/* Moves the runs of the last frame to the past. */
void drawing_record(struct model *model)
{
    append(model, &model->past, &model->fresh);
    append(model, &model->past_idle, &model->fresh_idle);
    model->fresh.first = model->fresh.last = 0;
    model->fresh_idle.first = model->fresh_idle.last = 0;
    if (list_count(&model->past) > 0) {
        int64_t begin = end_of_past(model) - PAST_NS;
        drop_before(model, &model->past, begin);
        drop_before(model, &model->past_idle, begin);
    }
    /* thinned to half of the limit, so that this need not be repeated at each frame */
    if (list_count(&model->past) > PAST_RUNS)
        thin(model, &model->past, PAST_RUNS / 2, true);
    if (list_count(&model->past_idle) > PAST_RUNS)
        thin(model, &model->past_idle, PAST_RUNS / 2, false);
}
