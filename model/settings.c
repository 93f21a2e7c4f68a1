/* SPDX-License-Identifier: MIT */

/* Settings: policies, tunables, attributes of processes. */

#include "model/inside.h"
#include "policies/support/groups.h"

void apply_policy(struct model *model, const struct trace_record *record)
{
    mark_add(model, (int64_t)record->time, MARK_OF_POLICY, 0, NONE);
    struct pending_text *pending_text = text_begin(model, record, TEXT_OF_POLICY, NONE);
    pending_text->mark = model->marks.others;
    pending_text->shares_by = record->process;
    text_take(model, record);
}

void apply_tunable(struct model *model, const struct trace_record *record)
{
    mark_add(model, (int64_t)record->time, MARK_OF_TUNABLE, 0, NONE)->value = record->second;
    struct pending_text *pending_text = text_begin(model, record, TEXT_OF_TUNABLE, NONE);
    pending_text->mark = model->marks.others;
    pending_text->shares_by = record->process;
    pending_text->value = (int64_t)record->second;
}

void apply_annotation(struct model *model, const struct trace_record *record)
{
    struct mark *mark =
        mark_add(model, (int64_t)record->time, MARK_OF_REMARK, record->process, NONE);
    mark->value = record->second;
    mark->detail = record->first;
    struct pending_text *pending_text = text_begin(model, record, TEXT_OF_REMARK, NONE);
    pending_text->mark = model->marks.others;
}

static void set(struct process *process, uint32_t kind, int64_t value)
{
    process->attribute[kind] = value;
    process->attributes |= (uint16_t)(1u << kind);
    if (kind == ATTRIBUTE_PRIORITY)
        process->priority = value;
    if (kind == ATTRIBUTE_TICKETS)
        process->tickets = process->share_tickets = value;
    if (kind == ATTRIBUTE_WEIGHT)
        process->weight = process->share_weight = value;
    if (kind == ATTRIBUTE_NICE)
        process->share_nice = value;
}

void apply_attribute(struct model *model, const struct trace_record *record)
{
    uint32_t kind = record->first;
    uint32_t slot = process_find(model, record->process);
    model->tickets_used |= kind == ATTRIBUTE_TICKETS;
    model->weights_used |= kind == ATTRIBUTE_WEIGHT;
    model->nices_used |= kind == ATTRIBUTE_NICE;
    if (slot == NONE)
        return;
    if (kind > 0 && kind < ATTRIBUTE_KINDS)
        set(process_of(model, slot), kind, (int64_t)record->second);
    struct mark *mark =
        mark_add(model, (int64_t)record->time, MARK_OF_ATTRIBUTE, record->process, slot);
    mark->value = record->second;
    mark->detail = kind;
}

void apply_task_group(struct model *model, const struct trace_record *record)
{
    struct scheduler all = {.groups = model->groups};
    uint32_t group = record->process;
    if (!group_value_allowed(group, record->first, (int64_t)record->second))
        return;
    __builtin_memcpy(all.group, model->group, sizeof(all.group));
    group_set(&all, group, (enum group_field)record->first, (int64_t)record->second);
    __builtin_memcpy(model->group, all.group, sizeof(all.group));
    model->groups = all.groups;
}

void model_status(struct model *model, const struct model_status *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct model_status *row = &rows[i];
        uint32_t slot =
            row->pid > 0 && row->pid <= INT32_MAX ? process_find(model, (uint32_t)row->pid) : NONE;
        if (slot == NONE)
            continue;
        struct process *process = process_of(model, slot);
        process->slice = row->slice;
        process->tickets = row->tickets;
        if (model->policy.shares_by == SHARES_BY_WEIGHT)
            process->weight = row->priority;
        else
            process->priority = row->priority;
    }
}
