/* SPDX-License-Identifier: MIT */

/* The waiting processes of each queue, in the order of arrival, and when CPUs were idle. */

#include "model/inside.h"

static void link_last(struct model *model, struct cpu *queue, uint32_t slot)
{
    struct process *process = process_of(model, slot);
    process->next = NONE;
    process->previous = queue->queue_last;
    if (queue->queue_last == NONE)
        queue->queue_first = slot;
    else
        process_of(model, queue->queue_last)->next = slot;
    queue->queue_last = slot;
    queue->queue_count++;
}

static void unlink_process(struct model *model, struct cpu *queue, uint32_t slot)
{
    struct process *process = process_of(model, slot);
    if (process->previous == NONE)
        queue->queue_first = process->next;
    else
        process_of(model, process->previous)->next = process->next;
    if (process->next == NONE)
        queue->queue_last = process->previous;
    else
        process_of(model, process->next)->previous = process->previous;
    queue->queue_count--;
}

/* Advances the clock to `time`, and returns the clock, which may be later. */
static int64_t reached(struct model *model, int64_t time)
{
    model->clock = later(model->clock, time);
    return model->clock;
}

/* Notes that a queue is no longer empty (1), or empty again (-1). */
static void occupy(struct model *model, uint32_t queue, int change, int64_t time)
{
    time = reached(model, time);
    model->occupied += (uint32_t)change;
    model->occupied_sum += (uint64_t)change * queue;
    bool alone = model->occupied == 1 && !has_shared_queue(model);
    if (list_count(&model->occupancy) == model->occupancy.capacity)
        idle_search(model, time);
    *(struct occupancy *)list_add(model, &model->occupancy) = (struct occupancy){
        .time = time,
        .queues = model->occupied,
        .only = alone ? (int32_t)model->occupied_sum : -1,
    };
}

/* Adds a process, which must be in no queue, and makes it RUNNABLE. */
void queue_add(struct model *model, uint32_t slot, uint32_t queue, int64_t time)
{
    struct cpu *cpu = cpu_of(model, queue);
    process_of(model, slot)->queue = queue;
    process_of(model, slot)->state = RUNNABLE;
    if (cpu->queue_count == 0)
        occupy(model, queue, 1, time);
    link_last(model, cpu, slot);
}

/* Removes a RUNNABLE process from its queue. */
void queue_remove(struct model *model, uint32_t slot, int64_t time)
{
    uint32_t queue = process_of(model, slot)->queue;
    struct cpu *cpu = cpu_of(model, queue);
    unlink_process(model, cpu, slot);
    if (cpu->queue_count == 0)
        occupy(model, queue, -1, time);
}

/* Moves a waiting process to the end of a queue, which may be its present one. */
void queue_move(struct model *model, uint32_t slot, uint32_t queue, int64_t time)
{
    struct process *process = process_of(model, slot);
    if (process->queue != queue && (process->placed || process->is_queue_known))
        process->since = later(time, process->since);
    queue_remove(model, slot, time);
    queue_add(model, slot, queue, time);
}

/* Moves each task in a queue to the queue where it belongs. */
static void rearrange(struct model *model, uint32_t queue, int64_t time)
{
    uint32_t count = cpu_of(model, queue)->queue_count;
    uint32_t slot = cpu_of(model, queue)->queue_first;
    for (; count > 0; count--) {
        const struct process *process = process_of(model, slot);
        uint32_t next = process->next;
        uint32_t home = process->cpu > 0 ? (uint32_t)process->cpu : 0;
        uint32_t place = model->shared ? 0 : home;
        if (process->queue != place)
            queue_move(model, slot, place, time);
        slot = next;
    }
}

/* Handles another policy or tunable: there may now be one queue instead of several, or
 * the reverse. Does nothing if the trace records the queues. */
void queues_rearrange(struct model *model, int64_t time)
{
    bool shared = has_shared_queue(model);
    if (shared == model->shared || model->has_queue_records)
        return;
    model->shared = shared;
    for (uint32_t queue = 0; queue < model->header.cpus; queue++)
        rearrange(model, queue, time);
}

/* ---- waits at CPUs, by the rules of docs/explain.md ---- */

void stay_begin(struct model *model, uint32_t slot, uint32_t cpu, bool placed, int64_t time)
{
    struct process *process = process_of(model, slot);
    process->waits_at = cpu;
    process->placed = placed;
    process->stay_since = time;
}

void stay_end(struct model *model, uint32_t slot, uint32_t cpu, int64_t time)
{
    struct process *process = process_of(model, slot);
    int64_t end = later(time, process->stay_since);
    spell_add(model, slot, WAIT, cpu, process->why, process->stay_since, end);
    process->stay_since = end;
}

/* ---- CPUs ---- */

void stop_unseen(struct model *model, uint32_t number, int64_t time)
{
    struct cpu *cpu = cpu_of(model, number);
    if (cpu->unseen_since >= 0)
        spell_add(model, 0, UNSEEN, number, 0, cpu->unseen_since, later(time, cpu->unseen_since));
    cpu->unseen_since = -1;
}

void stop_idling(struct model *model, uint32_t number, int64_t time)
{
    struct cpu *cpu = cpu_of(model, number);
    int64_t begin = cpu->idle_since;
    if (begin < 0)
        return;
    time = reached(model, time);
    cpu->idle_since = -1;
    if (time <= begin)
        return;
    if (list_count(&model->idle) == model->idle.capacity)
        idle_search(model, time);
    *(struct stretch *)list_add(model, &model->idle) =
        (struct stretch){.begin = begin, .end = time, .cpu = number};
}
