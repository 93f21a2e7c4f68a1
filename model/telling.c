/* SPDX-License-Identifier: MIT */

/*
 * Texts in several records of one CPU, with other CPUs' records in between. Only a following record
 * of another kind shows that a text is complete, so the part so far is used.
 */

#include "model/inside.h"

#define RECORDS_MAX 21 /* of one text */

struct telling *telling_begin(struct model *model, const struct trace_record *record,
                              enum text_target target, uint32_t slot)
{
    struct telling *telling = &cpu_of(model, record->cpu)->telling;
    telling->text.bytes = 0;
    telling->records = record->kind == TRACE_EXEC || record->kind == TRACE_POLICY ? 0 : 1;
    telling->over = telling->has_tunable = false;
    telling->target =
        (uint8_t)(slot == NONE && target == TEXT_OF_PROCESS ? TEXT_OF_NOTHING : target);
    telling->slot = slot;
    telling->serial = slot == NONE ? 0 : process_of(model, slot)->serial;
    telling->time = (int64_t)record->time;
    return telling;
}

static void append(struct telling *telling, uint64_t bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count && !telling->over; i++) {
        char byte = (char)(bytes >> 8 * i);
        telling->over = byte == 0;
        if (byte != 0)
            telling->text.byte[telling->text.bytes++] = byte;
    }
}

static void name_mark(struct model *model, const struct telling *telling)
{
    struct mark *mark = mark_find(model, telling->mark);
    if (!mark)
        return;
    mark->name = telling->text;
    mark->named = true;
}

static void told_of_process(struct model *model, const struct telling *telling)
{
    const struct process *process = process_of(model, telling->slot);
    if (process->living && process->serial == telling->serial)
        process_called(model, telling->slot, &telling->text);
}

static void told_of_policy(struct model *model, const struct telling *telling)
{
    name_mark(model, telling);
    policy_start(model, &telling->text, telling->shares_by);
    queues_rearrange(model, telling->time);
}

static void told_of_tunable(struct model *model, struct telling *telling)
{
    if (telling->has_tunable)
        policy_unset(model, &telling->tunable);
    telling->tunable = telling->text;
    telling->has_tunable = true;
    name_mark(model, telling);
    policy_set(model, &telling->text, telling->value, telling->shares_by);
    queues_rearrange(model, telling->time);
}

void telling_take(struct model *model, const struct trace_record *record)
{
    struct telling *telling = &cpu_of(model, record->cpu)->telling;
    if (telling->records < RECORDS_MAX) {
        append(telling, record->second, 8);
        append(telling, record->first, 4);
        telling->records++;
    }
    if (telling->text.bytes == 0 && record->kind != TRACE_TEXT)
        return;
    if (telling->target == TEXT_OF_PROCESS)
        told_of_process(model, telling);
    else if (telling->target == TEXT_OF_POLICY)
        told_of_policy(model, telling);
    else if (telling->target == TEXT_OF_TUNABLE)
        told_of_tunable(model, telling);
    else if (telling->target == TEXT_OF_REMARK)
        name_mark(model, telling);
}

void tell_text(struct model *model, const struct trace_record *record)
{
    telling_take(model, record);
}
