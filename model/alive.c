/* SPDX-License-Identifier: MIT */

/* All that holds now, as a trace that begins here tells of it. */

#include "model/message.h"

static void write_tunables(const struct model *model, struct message *message)
{
    const struct in_force *force = &model->policy;
    uint32_t count = force->tunable_count;
    message_several(message, "tunables", MODEL_LIST, 0, count);
    int64_t *value = message_add(message, "tunables.value", MODEL_I64, 0, count, count);
    for (uint32_t i = 0; i < count; i++)
        value[i] = force->tunable[i].value;
    message_texts(message, "tunables.name", count);
    for (uint32_t i = 0; i < count; i++) {
        write_name(message, &force->tunable[i].name);
        text_end(message, i);
    }
}

static void write_cpus_alive(const struct model *model, struct message *message)
{
    uint32_t cpus = model->header.cpus, count = 0;
    message_several(message, "cpus", MODEL_LIST, 0, cpus);
    int64_t *running = message_add(message, "cpus.running", MODEL_I64, 0, cpus, cpus);
    for (uint32_t i = 0; i < cpus; i++) {
        const struct cpu *cpu = cpu_of(model, i);
        running[i] = cpu->running == NONE ? 0 : process_of(model, cpu->running)->pid;
        count += cpu->queue_count;
    }
    int64_t *pid = message_add(message, "cpus.queue", MODEL_I64, 0, count, cpus);
    uint32_t *ends = message_ends(message);
    count = 0;
    for (uint32_t i = 0; i < cpus; i++) {
        uint32_t slot = cpu_of(model, i)->queue_first;
        for (; slot != NONE; slot = process_of(model, slot)->next)
            *pid++ = process_of(model, slot)->pid;
        ends[i] = count += cpu_of(model, i)->queue_count;
    }
}

static int64_t state_of(const struct process *process)
{
    static const uint8_t states[] = {
        [RUNNABLE] = PROCESS_RUNNABLE, [RUNNING] = PROCESS_RUNNING, [BLOCKED] = PROCESS_BLOCKED};
    return states[process->state];
}

static void write_texts(const struct model *model, struct message *message, const uint32_t *slots)
{
    uint32_t count = model->living;
    message_texts(message, "processes.name", count);
    for (uint32_t i = 0; i < count; i++) {
        const struct process *process = process_of(model, slots[i]);
        write_process(message, process->named, name_of(model, slots[i]), process->pid);
        text_end(message, i);
    }
    message_texts(message, "processes.group", count);
    for (uint32_t i = 0; i < count; i++) {
        write_label(message, process_of(model, slots[i])->label);
        text_end(message, i);
    }
}

/* Rows of kind and value: the attributes that the trace has told. */
static void write_attributes(const struct model *model, struct message *message,
                             const uint32_t *slots)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->living; i++)
        count += (uint32_t)__builtin_popcount(process_of(model, slots[i])->attributes);
    int64_t *row = message_add(message, "processes.attributes", MODEL_I64, 2, count, model->living);
    uint32_t *ends = message_ends(message);
    count = 0;
    for (uint32_t i = 0; i < model->living; i++) {
        const struct process *process = process_of(model, slots[i]);
        for (uint32_t kind = 0; kind < ATTRIBUTE_KINDS; kind++) {
            if ((process->attributes >> kind & 1) == 0)
                continue;
            *row++ = kind;
            *row++ = process->attribute[kind];
            count++;
        }
        ends[i] = count;
    }
}

static void write_processes_alive(struct model *model, struct message *message)
{
    static const char *const names[] = {
        "processes.pid",    "processes.parent", "processes.thread_of", "processes.state",
        "processes.reason", "processes.cpu",    "processes.level"};
    const uint32_t *slots = processes_sort(model);
    uint32_t count = model->living;
    int64_t *column[7];
    message_several(message, "processes", MODEL_LIST, 0, count);
    for (uint32_t i = 0; i < 7; i++)
        column[i] = message_add(message, names[i], MODEL_I64, 0, count, count);
    bool *sure = message_add(message, "processes.sure", MODEL_BOOL, 0, count, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct process *process = process_of(model, slots[i]);
        column[0][i] = process->pid;
        column[1][i] = process->parent;
        column[2][i] = process->thread_of;
        column[3][i] = state_of(process);
        column[4][i] = process->state == BLOCKED ? process->blocked_for : 0;
        column[5][i] = process_place(process);
        column[6][i] = process->level;
        sure[i] = process->sure;
    }
    write_texts(model, message, slots);
    write_attributes(model, message, slots);
}

const void *model_alive(struct model *model)
{
    struct message message = message_begin(model);
    message_number(&message, "now_ns", model->now);
    message_number(&message, "shares_by", model->policy.shares_by);
    message_texts(&message, "policy", 1);
    write_name(&message, &model->policy.text);
    text_end(&message, 0);
    write_tunables(model, &message);
    write_cpus_alive(model, &message);
    write_processes_alive(model, &message);
    return message_end(&message);
}
