/* SPDX-License-Identifier: MIT */

/* Handles that CPUs switch from one process to another. */

#include "model/inside.h"

enum left_as { LEFT_RUNNABLE, LEFT_BLOCKED, LEFT_FOR_GOOD };

static enum left_as left_as(uint64_t state)
{
    if (state == PROCESS_RUNNABLE)
        return LEFT_RUNNABLE;
    return state == PROCESS_BLOCKED ? LEFT_BLOCKED : LEFT_FOR_GOOD;
}

static void go_back(struct model *model, uint32_t slot, uint32_t cpu, int64_t time)
{
    struct process *process = process_of(model, slot);
    process->level = process->next_level;
    process->wait_since = time;
    if (!process->is_queue_known)
        process->queue = has_shared_queue(model) ? 0 : cpu;
    stay_begin(model, slot, cpu, true, time);
    queue_add(model, slot, process->queue, time);
}

/* Ends the run of a process that leaves its CPU. */
static void leave(struct model *model, uint32_t slot, uint32_t cpu, int64_t time, enum left_as as)
{
    struct process *process = process_of(model, slot);
    int64_t begin = process->since;
    uint8_t stops = as == LEFT_BLOCKED ? STOPPED_BLOCKED : STOPPED_ENDED;
    process->run_time += time - begin;
    process->since = time;
    if (as == LEFT_RUNNABLE) {
        stops = process->stops;
        if (stops == GOES_ON) {
            stops = STOPPED_PREEMPTED;
            process->why = PREEMPTED;
        }
    }
    spell_add(model, slot, RUN, cpu, stops, begin, time);
    if (as == LEFT_RUNNABLE)
        go_back(model, slot, cpu, time);
    else if (as == LEFT_BLOCKED)
        process->state = BLOCKED;
    else
        process_bury(model, slot, time);
}

static void end_wait(struct model *model, uint32_t slot, uint32_t cpu, int64_t time)
{
    struct process *process = process_of(model, slot);
    queue_remove(model, slot, time);
    if (process->queue != cpu && process->is_queue_known && !has_shared_queue(model))
        model->policy.shared_seen = true;
    stay_end(model, slot, process->placed ? process->waits_at : cpu, time);
    process->waited = later(process->stay_since - process->wait_since, 0);
    process->waiting_time += process->waited;
}

static void count_latencies(struct model *model, uint32_t slot, int64_t time)
{
    struct process *process = process_of(model, slot);
    if (process->woken_at >= 0)
        happen(model, LATENCIES, process->woken_at, later(time - process->woken_at, 0), slot);
    process->woken_at = -1;
    if (!process->ran && process->forked_at >= 0)
        happen(model, RESPONSES, time, later(time - process->forked_at, 0), slot);
    process->ran = true;
}

/* Begins the run of a process. */
static void enter(struct model *model, uint32_t slot, uint32_t number, int64_t time)
{
    struct process *process = process_of(model, slot);
    struct cpu *cpu = cpu_of(model, number);
    process->waited = 0;
    if (process->state == RUNNABLE)
        end_wait(model, slot, number, time);
    count_latencies(model, slot, time);
    if (cpu->decided != process->serial)
        silent_choice(model, slot, time, number);
    cpu->decided = model->has_visits ? process->serial : 0;
    process->level = process->next_level;
    process->state = RUNNING;
    process->since = process->picked_at = time;
    process->cpu = (int32_t)number;
    process->is_queue_known = false;
    process->stops = GOES_ON;
    process->picks++;
}

/* ---- after lost records ---- */

/* Takes a process off its CPU after records were lost, so its state is unknown. */
static void take_off(struct model *model, uint32_t slot, int64_t time)
{
    struct process *process = process_of(model, slot);
    uint32_t number = (uint32_t)process->cpu;
    struct cpu *cpu = cpu_of(model, number);
    cpu->running = NONE;
    cpu->since = time;
    cpu->idle_since = later(model->clock, time);
    leave(model, slot, number, later(time, process->since),
          process->exited ? LEFT_FOR_GOOD : LEFT_BLOCKED);
}

/* Returns the slot of the process with this PID, if it runs nowhere; NONE: unknown. */
static uint32_t find_off_cpu(struct model *model, uint32_t pid, int64_t time)
{
    uint32_t slot = process_find(model, pid);
    if (slot == NONE || process_of(model, slot)->state != RUNNING)
        return slot;
    take_off(model, slot, time);
    return process_find(model, pid);
}

/* Handles a contradiction: the process that was assumed to run on this CPU must have left, and
 * the process with the PID `left` must have come. */
static uint32_t mend(struct model *model, uint32_t left, uint32_t cpu, int64_t time)
{
    uint32_t current = cpu_of(model, cpu)->running;
    if (current != NONE)
        take_off(model, current, time);
    if (left == 0)
        return NONE;
    uint32_t slot = find_off_cpu(model, left, time);
    if (slot == NONE)
        return appear(model, left, time, RUNNING, cpu);
    stop_idling(model, cpu, time);
    enter(model, slot, cpu, time);
    return slot;
}

/* ---- records ---- */

static void run(struct model *model, const struct trace_record *record, struct cpu *cpu)
{
    int64_t time = (int64_t)record->time;
    uint32_t slot = find_off_cpu(model, record->process, time);
    if (slot == NONE)
        slot = appear(model, record->process, time, RUNNABLE, record->cpu);
    cpu->running = slot;
    if (slot == NONE)
        return;
    enter(model, slot, record->cpu, time);
    if (record->first != 0)
        happen(model, SWITCHES, time, 0, 0);
}

void apply_switch(struct model *model, const struct trace_record *record)
{
    int64_t time = (int64_t)record->time;
    struct cpu *cpu = cpu_of(model, record->cpu);
    uint32_t current = cpu->running;
    stop_unseen(model, record->cpu, time);
    if ((current == NONE ? 0 : process_of(model, current)->pid) != record->first)
        current = mend(model, record->first, record->cpu, time);
    if (current != NONE)
        leave(model, current, record->cpu, time, left_as(record->second));
    else
        stop_idling(model, record->cpu, time);
    cpu->running = NONE;
    cpu->since = time;
    if (record->process != 0)
        run(model, record, cpu);
    else
        cpu->idle_since = later(model->clock, time);
}

/* Continues the process's run at another level. */
static void change_level(struct model *model, uint32_t slot, uint32_t cpu, int64_t time)
{
    struct process *process = process_of(model, slot);
    spell_add(model, slot, RUN, cpu, GOES_ON, process->since, time);
    process->waited = 0;
    process->run_time += time - process->since;
    process->since = time;
    process->level = process->next_level;
}

static void visit_ends(struct model *model, const struct trace_record *record)
{
    struct cpu *cpu = cpu_of(model, record->cpu);
    if (cpu->entered)
        visit_add(model, record->cpu, cpu->entered_at, (int64_t)record->time,
                  (int64_t)record->second - cpu->entered_cycles);
    cpu->entered = false;
}

void apply_scheduler_exit(struct model *model, const struct trace_record *record)
{
    struct cpu *cpu = cpu_of(model, record->cpu);
    int64_t time = (int64_t)record->time;
    visit_ends(model, record);
    model->has_visits = true;
    if (cpu->running != NONE) {
        struct process *process = process_of(model, cpu->running);
        process->selections++;
        process->picked_at = time;
        process->stops = GOES_ON;
        /* without a DECISION record, the annotation of a choice is 0 */
        if (cpu->decided != process->serial && remark_is_level(model) && !model->has_queue_records)
            process->next_level = 0;
        if (process->next_level != process->level)
            change_level(model, cpu->running, record->cpu, time);
    }
    cpu->decided = 0;
}
