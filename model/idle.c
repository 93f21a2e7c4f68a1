/* SPDX-License-Identifier: MIT */

/*
 * Finds the times when a CPU was idle while a process waited at another CPU: when the CPU was idle,
 * and the queue of another CPU was not empty.
 *
 * Times are those of the model's clock, which never goes back. If the clocks of CPUs differ, sums
 * may be wrong by the difference.
 */

#include "model/inside.h"

static void add_idle(struct model *model, uint32_t cpu, int64_t begin, int64_t end)
{
    const struct stretch stretch = {.begin = begin, .end = end, .cpu = cpu};
    if (end <= begin)
        return;
    happen(model, IDLE_WHILE_QUEUED, end, begin, 0);
    draw_idle(model, &stretch);
}

/* Returns the index of the first change after `time`. */
static uint32_t change_after(const struct occupancy *changes, uint32_t count, int64_t time)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (changes[middle].time <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool counts(const struct occupancy *occupancy, uint32_t cpu)
{
    return occupancy->queues > 0 && occupancy->only != (int32_t)cpu;
}

static void search_idling(struct model *model, const struct stretch *idle)
{
    const struct occupancy *changes = row_of(model, &model->occupancy, 0);
    uint32_t count = list_count(&model->occupancy);
    uint32_t next = change_after(changes, count, idle->begin);
    const struct occupancy *now = next == 0 ? &model->searched : &changes[next - 1];
    int64_t begin = idle->begin, since = counts(now, idle->cpu) ? begin : NEVER;
    for (; next < count && changes[next].time < idle->end; next++) {
        bool does = counts(&changes[next], idle->cpu);
        bool lasts = next + 1 == count || changes[next + 1].time > changes[next].time;
        if (!lasts)
            continue;
        if (does && since == NEVER)
            since = changes[next].time;
        if (!does && since != NEVER) {
            add_idle(model, idle->cpu, since, changes[next].time);
            since = NEVER;
        }
    }
    if (since != NEVER)
        add_idle(model, idle->cpu, since, idle->end);
}

/* Counts the idle times of each CPU, and computes where they begin in the sorted array. */
static uint32_t place_by_cpu(struct model *model, const struct stretch *idle, uint32_t count)
{
    uint32_t total = 0;
    for (uint32_t cpu = 0; cpu < model->header.cpus; cpu++)
        cpu_of(model, cpu)->until = cpu_of(model, cpu)->idle_since >= 0;
    for (uint32_t i = 0; i < count; i++)
        cpu_of(model, idle[i].cpu)->until++;
    for (uint32_t cpu = 0; cpu < model->header.cpus; cpu++) {
        cpu_of(model, cpu)->at = total;
        total += cpu_of(model, cpu)->until;
    }
    return total;
}

/* Sorts the idle times by CPU; a CPU's unfinished idle time is its last one. */
static uint32_t sort_idling(struct model *model, struct stretch *sorted, int64_t until)
{
    const struct stretch *idle = row_of(model, &model->idle, 0);
    uint32_t count = list_count(&model->idle);
    uint32_t total = place_by_cpu(model, idle, count);
    for (uint32_t i = 0; i < count; i++)
        sorted[cpu_of(model, idle[i].cpu)->at++] = idle[i];
    for (uint32_t number = 0; number < model->header.cpus; number++) {
        const struct cpu *cpu = cpu_of(model, number);
        if (cpu->idle_since >= 0)
            sorted[cpu->at] =
                (struct stretch){.begin = cpu->idle_since, .end = until, .cpu = number};
    }
    return total;
}

/* Continues the search up to the time `until`. */
void idle_search(struct model *model, int64_t until)
{
    struct stretch *sorted = scratch_of(model);
    uint32_t total = sort_idling(model, sorted, until);
    for (uint32_t i = 0; i < total; i++) {
        sorted[i].begin = later(sorted[i].begin, model->searched.time);
        if (sorted[i].end > sorted[i].begin)
            search_idling(model, &sorted[i]);
    }
    uint32_t count = list_count(&model->occupancy);
    if (count > 0)
        model->searched = *(const struct occupancy *)row_of(model, &model->occupancy, count - 1);
    model->searched.time = until;
    model->occupancy.first = model->occupancy.last = 0;
    model->idle.first = model->idle.last = 0;
}
