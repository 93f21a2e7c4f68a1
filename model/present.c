/* SPDX-License-Identifier: MIT */

/* Writes the present state: CPUs with their queues, and processes sorted by PID. */

#include "model/message.h"

/* ---- levels ---- */

/* Computes the present serving level of each task. */
static void find_levels(struct model *model)
{
    for (uint32_t i = 0; i < model->living; i++) {
        struct process *process = process_of(model, living_of(model)[i]);
        process->level_now = process->level;
        if (process->state == RUNNABLE)
            process->level_now = (uint32_t)rank_of(model, process, model->now).level;
    }
}

static int64_t level_of(const struct model *model, const struct process *process)
{
    return has_levels(model) ? (int64_t)process->level_now : -1;
}

/* ---- CPUs ---- */

static void write_queues(struct model *model, struct message *message)
{
    uint32_t cpus = model->header.cpus, count = 0;
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        count += cpu_of(model, cpu)->queue_count;
    int64_t *row = message_add(message, "cpus.queue", MODEL_I64, 3, count, cpus);
    uint32_t *ends = message_ends(message);
    count = 0;
    for (uint32_t cpu = 0; cpu < cpus; cpu++) {
        uint32_t slot = cpu_of(model, cpu)->queue_first;
        for (; slot != NONE; slot = process_of(model, slot)->next, row += 3) {
            const struct process *process = process_of(model, slot);
            row[0] = process->pid;
            row[1] = level_of(model, process);
            row[2] = process->since;
        }
        ends[cpu] = count += cpu_of(model, cpu)->queue_count;
    }
}

void write_cpus(struct model *model, struct message *message)
{
    uint32_t cpus = model->header.cpus;
    find_levels(model);
    message_several(message, "cpus", MODEL_LIST, 0, cpus);
    int64_t *pid = message_add(message, "cpus.running", MODEL_I64, 0, cpus, cpus);
    int64_t *since = message_add(message, "cpus.since_ns", MODEL_I64, 0, cpus, cpus);
    int64_t *level = message_add(message, "cpus.level", MODEL_I64, 0, cpus, cpus);
    double *busy = message_add(message, "cpus.busy", MODEL_F64, 0, cpus, cpus);
    for (uint32_t i = 0; i < cpus; i++) {
        const struct cpu *cpu = cpu_of(model, i);
        const struct process *process =
            cpu->running == NONE ? NULL : process_of(model, cpu->running);
        pid[i] = process ? process->pid : 0;
        since[i] = cpu->since;
        level[i] = process ? level_of(model, process) : -1;
        busy[i] = (double)cpu->busy_now / (double)elapsed_of(model);
    }
    write_queues(model, message);
}

/* ---- processes ---- */

static int64_t slice_left(const struct model *model, const struct process *process)
{
    if (process->slice < 0 || process->state != RUNNING)
        return process->slice;
    return later(process->slice - (model->now - process->picked_at), 0);
}

static int64_t run_so_far(const struct model *model, const struct process *process)
{
    if (process->state != RUNNING)
        return process->run_time;
    int64_t end = earlier(model->now, cpu_of(model, (uint32_t)process->cpu)->ended_at);
    return process->run_time + later(end - process->since, 0);
}

static int64_t waits_for(const struct model *model, const struct process *process)
{
    return process->state == RUNNABLE ? later(model->now - process->wait_since, 0) : 0;
}

/* number of columns with whole numbers */
enum { PROCESS_NUMBERS = 15 };

static const char *const process_numbers[PROCESS_NUMBERS] = {
    "processes.pid",        "processes.parent",      "processes.state",
    "processes.reason",     "processes.cpu",         "processes.priority",
    "processes.tickets",    "processes.weight",      "processes.nice",
    "processes.level",      "processes.run_ns",      "processes.slice_left_ns",
    "processes.waiting_ns", "processes.wait_now_ns", "processes.selections",
};

static void write_numbers(const struct model *model, const struct process *process,
                          int64_t *numbers)
{
    int64_t wait = waits_for(model, process);
    *numbers++ = process->pid;
    *numbers++ = process->parent;
    *numbers++ = process->state;
    *numbers++ = process->state == BLOCKED ? process->blocked_for : 0;
    *numbers++ = process_place(process);
    *numbers++ = process->priority;
    *numbers++ = process->tickets;
    *numbers++ = process->weight;
    *numbers++ = process->share_nice;
    *numbers++ = level_of(model, process);
    *numbers++ = run_so_far(model, process);
    *numbers++ = slice_left(model, process);
    *numbers++ = process->waiting_time + wait;
    *numbers++ = wait;
    *numbers = model->has_visits ? process->selections : process->picks;
}

static void write_texts(const struct model *model, struct message *message, const uint32_t *slots)
{
    message_several(message, "processes.name", MODEL_TEXT, 0, model->living);
    for (uint32_t i = 0; i < model->living; i++) {
        const struct process *process = process_of(model, slots[i]);
        write_process(message, process->named, name_of(model, slots[i]), process->pid);
        text_end(message, i);
    }
    message_several(message, "processes.group", MODEL_TEXT, 0, model->living);
    for (uint32_t i = 0; i < model->living; i++) {
        const struct process *process = process_of(model, slots[i]);
        if ((process->label & 0xff) != 0)
            write_label(message, process->label);
        else
            write_process(message, process->named, name_of(model, slots[i]), process->pid);
        text_end(message, i);
    }
}

void write_processes(struct model *model, struct message *message)
{
    uint32_t count = model->living;
    const uint32_t *slots = processes_sort(model);
    int64_t *columns[PROCESS_NUMBERS];
    for (uint32_t i = 0; i < PROCESS_NUMBERS; i++)
        columns[i] = message_several(message, process_numbers[i], MODEL_I64, 0, count);
    bool *monitor_flags = message_several(message, "processes.own", MODEL_BOOL, 0, count);
    double *share = message_several(message, "processes.share", MODEL_F64, 0, count);
    double *ideal = message_several(message, "processes.ideal", MODEL_F64, 0, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct process *process = process_of(model, slots[i]);
        int64_t numbers[PROCESS_NUMBERS];
        write_numbers(model, process, numbers);
        for (uint32_t j = 0; j < PROCESS_NUMBERS; j++)
            columns[j][i] = numbers[j];
        monitor_flags[i] = is_monitor(model, process->pid);
        share[i] = process->share;
        ideal[i] = process->ideal;
    }
    write_texts(model, message, slots);
}
