/* SPDX-License-Identifier: MIT */

/*
 * Processes the records of a trace, one after another.
 *
 * If a record contradicts the state, because others were lost, its consistent part is used. A
 * record with invalid numbers is ignored.
 */

#include "model/inside.h"

#define AT_ONCE 65536 /* records that are processed before the window is updated */

/* ---- impossible records (schedlab.trace.bounds) ---- */

static bool has_no_process(const struct trace_record *record)
{
    uint32_t kind = record->kind;
    if (record->process > INT32_MAX)
        return true;
    if (kind == TRACE_FORK || kind == TRACE_SWITCH || kind == TRACE_WAKEUP)
        if (record->first > INT32_MAX)
            return true;
    return (kind == TRACE_FORK || kind == TRACE_FOUND) && record->second > INT32_MAX;
}

static bool has_no_counter(const struct trace_record *record)
{
    uint32_t kind = record->kind;
    return (kind == TRACE_START || kind == TRACE_SCHEDULER_ENTER || kind == TRACE_SCHEDULER_EXIT) &&
           record->second > INT64_MAX;
}

static bool is_impossible(const struct model *model, const struct trace_record *record)
{
    return record->time > TIME_MAX || record->cpu >= model->header.cpus || has_no_process(record) ||
           has_no_counter(record);
}

/* ---- short handlers ---- */

static void apply_start(struct model *model, const struct trace_record *record)
{
    struct cpu *cpu = cpu_of(model, record->cpu);
    cpu->started_at = cpu->since = (int64_t)record->time;
    cpu->idle_since = later(model->clock, cpu->since);
}

static void apply_end(struct model *model, const struct trace_record *record)
{
    cpu_of(model, record->cpu)->ended_at = (int64_t)record->time;
    stop_idling(model, record->cpu, (int64_t)record->time);
}

static void apply_lost(struct model *model, const struct trace_record *record)
{
    struct cpu *cpu = cpu_of(model, record->cpu);
    int64_t time = (int64_t)record->time;
    model->lost += record->second;
    if (record->second)
        mark_add(model, time, MARK_OF_LOSS, 0, NONE)->value = record->second;
    if (record->first == LOSS_UNSEEN && record->process) {
        process_unseen(model, record->process, time);
    } else if (record->first == LOSS_UNSEEN) {
        stop_idling(model, record->cpu, time);
        cpu->unseen_since = cpu->unseen_since < 0 ? time : cpu->unseen_since;
    } else if (record->first == LOSS_SEEN) {
        stop_unseen(model, record->cpu, time);
        cpu->idle_since = later(model->clock, time);
    }
}

static void apply_scheduler_enter(struct model *model, const struct trace_record *record)
{
    struct cpu *cpu = cpu_of(model, record->cpu);
    cpu->entered = true;
    cpu->entered_at = (int64_t)record->time;
    cpu->entered_cycles = (int64_t)record->second;
}

static void apply_block(struct model *model, const struct trace_record *record)
{
    uint32_t slot = process_find(model, record->process);
    if (slot != NONE)
        process_of(model, slot)->blocked_for = record->first;
}

static void will_stop(struct model *model, uint32_t pid, enum stop stop, enum why why)
{
    uint32_t slot = process_find(model, pid);
    if (slot == NONE)
        return;
    process_of(model, slot)->stops = (uint8_t)stop;
    process_of(model, slot)->why = (uint8_t)why;
}

static void apply_yield(struct model *model, const struct trace_record *record)
{
    will_stop(model, record->process, STOPPED_YIELDED, YIELDED);
}

static void apply_preempt(struct model *model, const struct trace_record *record)
{
    will_stop(model, record->process, STOPPED_PREEMPTED,
              record->first == PREEMPT_SLICE ? EXPIRED : PREEMPTED);
}

/* ---- queues ---- */

static void apply_wakeup(struct model *model, const struct trace_record *record)
{
    int64_t time = (int64_t)record->time;
    uint32_t slot = process_find(model, record->process);
    if (slot == NONE)
        slot = appear(model, record->process, time, BLOCKED, record->cpu);
    if (slot == NONE)
        return;
    struct process *process = process_of(model, slot);
    happen(model, WAKEUPS, time, 0, slot);
    if (process->state != BLOCKED)
        return;
    process->since = process->wait_since = process->woken_at = time;
    process->why = WOKEN;
    uint32_t place = (uint32_t)(record->second % model->header.cpus);
    stay_begin(model, slot, place, true, time);
    queue_add(model, slot, has_shared_queue(model) ? 0 : place, time);
}

static void apply_queued(struct model *model, const struct trace_record *record)
{
    uint32_t slot = process_find(model, record->process);
    if (slot == NONE || record->first >= model->header.cpus)
        return;
    struct process *process = process_of(model, slot);
    model->has_queue_records = true;
    model->policy.levels_seen |= record->second != 0;
    process->next_level = record->second < INT32_MAX ? (uint32_t)record->second : INT32_MAX;
    if (process->state == RUNNABLE) {
        process->level = process->next_level;
        queue_move(model, slot, record->first, (int64_t)record->time);
    } else {
        process->queue = record->first;
    }
    process->is_queue_known = true;
}

static void migrate(struct model *model, uint32_t slot, uint32_t from, uint32_t to, int64_t time)
{
    struct process *process = process_of(model, slot);
    if (process->state != RUNNABLE) {
        process->queue = to;
        return;
    }
    if (!process->placed && !process->is_queue_known && from < model->header.cpus)
        queue_move(model, slot, from, time);
    process->placed = true;
    if (process->queue != to)
        queue_move(model, slot, to, time);
}

static void move_stay(struct model *model, uint32_t slot, uint32_t from, uint32_t to, int64_t time)
{
    struct process *process = process_of(model, slot);
    if (process->state != RUNNABLE)
        return;
    bool is_known = !(process->why & MOVED) && from < model->header.cpus;
    stay_end(model, slot, is_known ? from : process->waits_at, time);
    process->waits_at = to;
    process->placed = true;
    process->why |= MOVED;
}

static void apply_migrate(struct model *model, const struct trace_record *record)
{
    uint32_t slot = process_find(model, record->process);
    if (slot == NONE)
        return;
    int64_t time = (int64_t)record->time;
    happen(model, MIGRATIONS, time, 0, slot);
    if (record->second >= model->header.cpus)
        return;
    if (!has_shared_queue(model))
        migrate(model, slot, record->first, (uint32_t)record->second, time);
    move_stay(model, slot, record->first, (uint32_t)record->second, time);
}

/* ---- all ---- */

typedef void apply_t(struct model *model, const struct trace_record *record);

static apply_t *const tellers[] = {
    [TRACE_START] = apply_start,
    [TRACE_END] = apply_end,
    [TRACE_LOST] = apply_lost,
    [TRACE_FORK] = apply_fork,
    [TRACE_EXEC] = apply_exec,
    [TRACE_TEXT] = apply_text,
    [TRACE_EXIT] = apply_exit,
    [TRACE_WAKEUP] = apply_wakeup,
    [TRACE_BLOCK] = apply_block,
    [TRACE_SWITCH] = apply_switch,
    [TRACE_YIELD] = apply_yield,
    [TRACE_PREEMPT] = apply_preempt,
    [TRACE_MIGRATE] = apply_migrate,
    [TRACE_POLICY] = apply_policy,
    [TRACE_TUNABLE] = apply_tunable,
    [TRACE_ATTRIBUTE] = apply_attribute,
    [TRACE_SCHEDULER_ENTER] = apply_scheduler_enter,
    [TRACE_SCHEDULER_EXIT] = apply_scheduler_exit,
    [TRACE_DECISION] = apply_decision,
    [TRACE_MARK] = apply_mark,
    [TRACE_FOUND] = apply_existing,
    [TRACE_QUEUED] = apply_queued,
    [TRACE_SAID] = apply_annotation,
    [TRACE_TASK_GROUP] = apply_task_group,
};

static void apply(struct model *model, const struct trace_record *record)
{
    if (record->kind >= sizeof(tellers) / sizeof(tellers[0]) || !tellers[record->kind])
        return;
    if (!is_impossible(model, record))
        tellers[record->kind](model, record);
}

static void take(struct model *model, const struct trace_record *records, size_t count)
{
    int64_t first = NEVER, last = 0;
    choices_plan(model, records, count);
    for (size_t i = 0; i < count; i++) {
        if (records[i].time > TIME_MAX)
            continue;
        first = earlier(first, (int64_t)records[i].time);
        last = later(last, (int64_t)records[i].time);
    }
    if (!model->has_started && first != NEVER) {
        model->has_started = true;
        model->begin = first;
    }
    for (size_t i = 0; i < count; i++)
        apply(model, &records[i]);
    model->events += count;
    happen(model, BATCHES, last, (int64_t)count, 0);
    model_reach(model, last);
    if (model->spells_unsettled > AT_ONCE)
        settle(model);
}

void model_feed(struct model *model, const void *records, size_t count)
{
    const struct trace_record *next = records;
    for (size_t taken; count > 0; count -= taken, next += taken) {
        taken = count < AT_ONCE ? count : AT_ONCE;
        take(model, next, taken);
    }
}

void model_reach(struct model *model, int64_t time)
{
    if (!model->has_started || time > TIME_MAX)
        return;
    model->now = later(model->now, time);
    model->clock = later(model->clock, model->now);
}
