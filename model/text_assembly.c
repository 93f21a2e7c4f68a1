/* SPDX-License-Identifier: MIT */

/*
 * Assembles texts from several records of a CPU, with records of other CPUs in between. Only the
 * CPU's next record of another kind shows that a text is complete, so the part so far is used until
 * then.
 */

#include "model/inside.h"

#define RECORDS_MAX 21 /* of one text */

struct pending_text *text_begin(struct model *model, const struct trace_record *record,
                                enum text_target target, uint32_t slot)
{
    struct pending_text *pending_text = &cpu_of(model, record->cpu)->pending_text;
    pending_text->text.bytes = 0;
    pending_text->records = record->kind == TRACE_EXEC || record->kind == TRACE_POLICY ? 0 : 1;
    pending_text->over = pending_text->has_tunable = false;
    pending_text->target =
        (uint8_t)(slot == NONE && target == TEXT_OF_PROCESS ? TEXT_OF_NOTHING : target);
    pending_text->slot = slot;
    pending_text->serial = slot == NONE ? 0 : process_of(model, slot)->serial;
    pending_text->time = (int64_t)record->time;
    return pending_text;
}

static void append(struct pending_text *pending_text, uint64_t bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count && !pending_text->over; i++) {
        char byte = (char)(bytes >> 8 * i);
        pending_text->over = byte == 0;
        if (byte != 0)
            pending_text->text.byte[pending_text->text.bytes++] = byte;
    }
}

static void name_mark(struct model *model, const struct pending_text *pending_text)
{
    struct mark *mark = mark_find(model, pending_text->mark);
    if (!mark)
        return;
    mark->name = pending_text->text;
    mark->named = true;
}

static void set_process_name(struct model *model, const struct pending_text *pending_text)
{
    const struct process *process = process_of(model, pending_text->slot);
    if (process->living && process->serial == pending_text->serial)
        process_called(model, pending_text->slot, &pending_text->text);
}

static void set_policy_name(struct model *model, const struct pending_text *pending_text)
{
    name_mark(model, pending_text);
    policy_start(model, &pending_text->text, pending_text->shares_by);
    queues_rearrange(model, pending_text->time);
}

static void set_tunable_name(struct model *model, struct pending_text *pending_text)
{
    if (pending_text->has_tunable)
        policy_unset(model, &pending_text->tunable);
    pending_text->tunable = pending_text->text;
    pending_text->has_tunable = true;
    name_mark(model, pending_text);
    policy_set(model, &pending_text->text, pending_text->value, pending_text->shares_by);
    queues_rearrange(model, pending_text->time);
}

void text_take(struct model *model, const struct trace_record *record)
{
    struct pending_text *pending_text = &cpu_of(model, record->cpu)->pending_text;
    if (pending_text->records < RECORDS_MAX) {
        append(pending_text, record->second, 8);
        append(pending_text, record->first, 4);
        pending_text->records++;
    }
    if (pending_text->text.bytes == 0 && record->kind != TRACE_TEXT)
        return;
    if (pending_text->target == TEXT_OF_PROCESS)
        set_process_name(model, pending_text);
    else if (pending_text->target == TEXT_OF_POLICY)
        set_policy_name(model, pending_text);
    else if (pending_text->target == TEXT_OF_TUNABLE)
        set_tunable_name(model, pending_text);
    else if (pending_text->target == TEXT_OF_REMARK)
        name_mark(model, pending_text);
}

void apply_text(struct model *model, const struct trace_record *record)
{
    text_take(model, record);
}
