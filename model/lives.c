/* SPDX-License-Identifier: MIT */

/* Processes start, are found, and end. */

#include "model/inside.h"

/* Another process now has this PID: the end of the previous one was lost. */
static void replace(struct model *model, uint32_t pid, int64_t time)
{
    uint32_t slot = process_find(model, pid);
    if (slot == NONE)
        return;
    struct process *process = process_of(model, slot);
    if (process->state == RUNNABLE)
        queue_remove(model, slot, time);
    struct cpu *cpu = process->cpu < 0 ? NULL : cpu_of(model, (uint32_t)process->cpu);
    if (cpu && cpu->running == slot) {
        int64_t end = later(time, process->since);
        spell_add(model, slot, RUN, (uint32_t)process->cpu, STOPPED_ENDED, process->since, end);
        cpu->running = NONE;
        cpu->since = time;
        cpu->idle_since = later(model->clock, time);
    }
    process_bury(model, slot, time);
}

static uint32_t add(struct model *model, uint32_t pid, int64_t time, uint32_t parent)
{
    if (pid == 0)
        return NONE;
    replace(model, pid, time);
    settle_for_room(model);
    return process_take(model, pid, time, parent);
}

/* Until it is found again, it waits for no known event. */
void process_unseen(struct model *model, uint32_t pid, int64_t time)
{
    uint32_t slot = process_find(model, pid);
    if (slot == NONE || process_of(model, slot)->state == RUNNING)
        return;
    struct process *process = process_of(model, slot);
    if (process->state == RUNNABLE) {
        queue_remove(model, slot, time);
        stay_end(model, slot, process->waits_at, time);
        process->waiting_time += later(process->stay_since - process->wait_since, 0);
    }
    process->state = BLOCKED;
    process->blocked_for = 0;
    process->unseen = true;
    process->since = time;
}

/* Returns the process with this PID if it was without records, else a new one. */
static uint32_t unseen_or_new(struct model *model, uint32_t pid, int64_t time)
{
    uint32_t slot = process_find(model, pid);
    if (slot == NONE || !process_of(model, slot)->unseen)
        return add(model, pid, time, NONE);
    struct process *process = process_of(model, slot);
    process->unseen = false;
    process->unseen_time += later(time - process->since, 0);
    process->since = process->wait_since = time;
    return slot;
}

/* Adds a process whose start is not in the trace: it was found, or records were lost. */
uint32_t appear(struct model *model, uint32_t pid, int64_t time, enum state state, uint32_t number)
{
    uint32_t slot = unseen_or_new(model, pid, time);
    if (slot == NONE)
        return NONE;
    struct process *process = process_of(model, slot);
    process->why = FOUND;
    process->state = (uint8_t)state;
    if (state == RUNNABLE) {
        stay_begin(model, slot, number, false, time);
        queue_add(model, slot, has_shared_queue(model) ? 0 : number, time);
    }
    if (state == RUNNING) {
        struct cpu *cpu = cpu_of(model, number);
        stop_idling(model, number, time);
        stop_unseen(model, number, time);
        process->cpu = (int32_t)number;
        process->ran = true;
        cpu->running = slot;
        cpu->since = time;
    }
    return slot;
}

void apply_fork(struct model *model, const struct trace_record *record)
{
    int64_t time = (int64_t)record->time;
    uint32_t parent = process_find(model, record->process);
    uint32_t slot = add(model, record->first, time, parent);
    if (slot == NONE)
        return;
    struct process *process = process_of(model, slot);
    process->thread_of = (uint32_t)record->second;
    process->forked_at = time;
    if (parent == NONE) { /* forked from outside, it is adopted by the first process */
        process->kin = model->first || record->process == 0;
    } else {
        process->share_tickets = process_of(model, parent)->share_tickets;
        process->share_weight = process_of(model, parent)->share_weight;
        process->share_nice = process_of(model, parent)->share_nice;
    }
    process->outside =
        model->in_the_middle ? is_of_the_kernel(model, slot) : model->first || !process->kin;
    process->why = FORKED;
    stay_begin(model, slot, record->cpu, false, time);
    queue_add(model, slot, has_shared_queue(model) ? 0 : record->cpu, time);
    model->first = false;
    mark_add(model, time, MARK_OF_START, record->first, slot);
}

void apply_existing(struct model *model, const struct trace_record *record)
{
    enum state state = RUNNABLE;
    if (record->first == PROCESS_RUNNING)
        state = RUNNING;
    if (record->first == PROCESS_BLOCKED)
        state = BLOCKED;
    model->first = false;
    model->in_the_middle = true;
    uint32_t slot = appear(model, record->process, (int64_t)record->time, state, record->cpu);
    if (slot != NONE)
        process_of(model, slot)->thread_of = (uint32_t)record->second;
    text_begin(model, record, TEXT_OF_PROCESS, slot);
}

void apply_exec(struct model *model, const struct trace_record *record)
{
    text_begin(model, record, TEXT_OF_PROCESS, process_find(model, record->process));
    text_take(model, record);
}

void apply_exit(struct model *model, const struct trace_record *record)
{
    int64_t time = (int64_t)record->time;
    uint32_t slot = process_find(model, record->process);
    if (slot == NONE)
        return;
    struct process *process = process_of(model, slot);
    process->exited = true;
    process->exit_at = time;
    int64_t forked = process->forked_at;
    happen(model, TURNAROUNDS, time, forked >= 0 ? later(time - forked, 0) : -1, slot);
    bool killed = record->first == UINT32_MAX;
    enum mark_word word = killed ? MARK_OF_KILL : MARK_OF_EXIT;
    mark_add(model, time, word, record->process, slot)->value = record->first;
}
