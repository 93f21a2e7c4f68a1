/* SPDX-License-Identifier: MIT */

/* Marks on time lines: the latest events of the system, and of lives. */

#include "model/message.h"

struct mark *mark_find(struct model *model, uint64_t number)
{
    if (number > model->marks.others || model->marks.others - number >= MARKS_MAX)
        return NULL;
    return &model->marks.other[(number - 1) % MARKS_MAX];
}

struct mark *mark_add(struct model *model, int64_t time, enum mark_word kind, uint32_t pid,
                      uint32_t slot)
{
    struct marks *marks = &model->marks;
    bool of_life = kind == MARK_OF_START || kind == MARK_OF_EXIT || kind == MARK_OF_KILL;
    struct mark *mark = of_life ? &marks->life[marks->lives++ % LIVES_MAX]
                                : &marks->other[marks->others++ % MARKS_MAX];
    mark->number = ++marks->count;
    mark->time = time;
    mark->kind = kind;
    mark->pid = pid;
    mark->value = mark->detail = 0;
    mark->named = slot != NONE && process_of(model, slot)->named;
    if (mark->named)
        mark->name = *name_of(model, slot);
    return mark;
}

static void begin_window(struct model *model, uint64_t root, uint32_t slot)
{
    uint32_t match = root <= INT32_MAX ? process_find(model, (uint32_t)root) : NONE;
    if (match == NONE)
        match = slot;
    if (match != NONE)
        process_of(model, match)->began = process_of(model, match)->outside = true;
}

void apply_mark(struct model *model, const struct trace_record *record)
{
    int64_t time = (int64_t)record->time;
    uint32_t pid = record->process;
    uint32_t slot = process_find(model, pid);
    if (record->first == MARK_BEGIN) {
        begin_window(model, record->second, slot);
        mark_add(model, time, MARK_OF_BEGIN, pid, slot);
    } else if (record->first == MARK_END) {
        mark_add(model, time, MARK_OF_END, pid, slot);
    } else if (record->first == MARK_NOTE) {
        mark_add(model, time, MARK_OF_NOTE, pid, slot)->value = record->second;
    } else if (record->first == MARK_GROUP && slot != NONE) {
        process_of(model, slot)->label = record->second;
    }
}

/* ---- texts ---- */

const char *mark_kind(const struct mark *mark)
{
    static const char *const kinds[] = {
        [MARK_OF_POLICY] = "policy",
        [MARK_OF_TUNABLE] = "tunable",
        [MARK_OF_ATTRIBUTE] = "attribute",
        [MARK_OF_BEGIN] = "begin",
        [MARK_OF_END] = "end",
        [MARK_OF_START] = "started",
        [MARK_OF_EXIT] = "ended",
        [MARK_OF_KILL] = "killed",
        [MARK_OF_NOTE] = "note",
        [MARK_OF_LOSS] = "lost",
        [MARK_OF_REMARK] = "remark",
    };
    return kinds[mark->kind];
}

static void write_attribute(struct message *message, uint32_t kind)
{
    write_words(message, kind > 0 && kind < ATTRIBUTE_KINDS ? attribute_names[kind] : "attribute");
    write_words(message, " of ");
}

/* "NAME PID" */
static void write_whose(struct message *message, const struct mark *mark)
{
    write_process(message, mark->named, &mark->name, mark->pid);
    write_byte(message, ' ');
    write_number(message, mark->pid);
}

static void write_of_system(struct message *message, const struct mark *mark)
{
    if (mark->kind == MARK_OF_LOSS) {
        write_thousands(message, mark->value);
        write_words(message, " records were lost");
    } else if (mark->named) {
        write_name(message, &mark->name);
    }
    if (mark->kind == MARK_OF_TUNABLE && mark->named) {
        write_words(message, " = ");
        write_signed(message, (int64_t)mark->value);
    }
}

/* Writes the policy's text with its numbers inserted at {}, and the process. */
static void write_remark(struct message *message, const struct mark *mark)
{
    const int64_t numbers[] = {(int64_t)mark->value, (int32_t)mark->detail};
    struct text part = {0};
    uint32_t used = 0;
    for (uint32_t i = 0; mark->named && i < mark->name.bytes; i++) {
        bool slot = used < 2 && i + 1 < mark->name.bytes && mark->name.byte[i] == '{' &&
                    mark->name.byte[i + 1] == '}';
        if (!slot) {
            part.byte[part.bytes++] = mark->name.byte[i];
            continue;
        }
        write_name(message, &part);
        write_signed(message, numbers[used++]);
        part.bytes = 0;
        i++;
    }
    write_name(message, &part);
    if (mark->pid > 0) {
        write_words(message, " · ");
        write_number(message, mark->pid);
    }
}

void write_mark(struct message *message, const struct mark *mark)
{
    if (mark->kind == MARK_OF_REMARK) {
        write_remark(message, mark);
        return;
    }
    if (mark->kind == MARK_OF_POLICY || mark->kind == MARK_OF_TUNABLE ||
        mark->kind == MARK_OF_LOSS) {
        write_of_system(message, mark);
        return;
    }
    if (mark->kind == MARK_OF_ATTRIBUTE)
        write_attribute(message, mark->detail);
    write_whose(message, mark);
    if (mark->kind == MARK_OF_ATTRIBUTE) {
        write_words(message, " = ");
        write_number(message, mark->value);
    } else if (mark->kind == MARK_OF_BEGIN) {
        write_words(message, " begins to measure");
    } else if (mark->kind == MARK_OF_END) {
        write_words(message, " has measured");
    } else if (mark->kind == MARK_OF_KILL) {
        write_words(message, ": killed");
    } else if (mark->kind == MARK_OF_EXIT) {
        write_words(message, ": status ");
        write_signed(message, (int32_t)mark->value);
    } else if (mark->kind == MARK_OF_NOTE) {
        write_words(message, ": ");
        write_label(message, mark->value);
    }
}
