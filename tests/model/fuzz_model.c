/* SPDX-License-Identifier: MIT */

/*
 * libFuzzer target: records made of the input's bytes. PIDs and CPUs are small, so that records
 * relate to each other; occasionally they are arbitrary. Between records, every query of a model
 * is made. Each answer is read to its last text.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/trace_format.h"
#include "model/model.h"

#define MEMORY  ((size_t)MODEL_MEMORY_MIN)
#define CPUS    5
#define PIDS    24
#define AT_ONCE 64

struct bytes {
    const uint8_t *next;
    size_t left;
};

static uint64_t take(struct bytes *bytes, size_t count)
{
    uint64_t value = 0;
    if (count > bytes->left)
        count = bytes->left;
    memcpy(&value, bytes->next, count);
    bytes->next += count;
    bytes->left -= count;
    return value;
}

static struct trace_record wild_record(struct bytes *bytes)
{
    return (struct trace_record){
        .time = take(bytes, 8),
        .process = (uint32_t)take(bytes, 4),
        .kind = (uint16_t)take(bytes, 2),
        .cpu = (uint16_t)take(bytes, 2),
        .first = (uint32_t)take(bytes, 4),
        .second = take(bytes, 8),
    };
}

static struct trace_record record(struct bytes *bytes, uint64_t *now)
{
    uint8_t kind = (uint8_t)take(bytes, 1);
    if (kind >= 250)
        return wild_record(bytes);
    *now += take(bytes, 1) * 1000;
    uint8_t small = (uint8_t)take(bytes, 1);
    struct trace_record record = {
        .time = small < 16 && *now > 5000 ? *now - 5000 : *now,
        .process = (uint32_t)take(bytes, 1) % PIDS,
        .kind = kind % (TRACE_SAID + 1),
        .cpu = small % CPUS,
        .first = (uint32_t)take(bytes, 1) % PIDS,
        .second = take(bytes, 1),
    };
    bool has_text = record.kind == TRACE_TEXT || record.kind == TRACE_EXEC;
    if (has_text || record.kind == TRACE_POLICY || record.kind == TRACE_MARK)
        record.second = take(bytes, 8);
    if (has_text || record.kind == TRACE_POLICY)
        record.first = (uint32_t)take(bytes, 4);
    return record;
}

static void expect(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void walk_texts(const char *base, const struct model_message *message,
                       const struct model_column *column)
{
    const uint32_t *ends = (const uint32_t *)(base + column->data);
    uint32_t last = 0;
    for (uint32_t i = 0; i < column->count; i++) {
        expect(ends[i] >= last, "a text ends before it begins");
        last = ends[i];
    }
    uint64_t end = (uint64_t)column->data + 4 * (uint64_t)column->count + last;
    expect(end <= message->bytes, "a text lies outside its message");
}

static void walk(const void *frame_data)
{
    static const uint32_t bytes_of[] = {0, 8, 4, 1, 8, 4, 0};
    const struct model_message *message = frame_data;
    const struct model_column *columns = (const struct model_column *)(message + 1);
    const char *base = frame_data;
    for (uint32_t i = 0; i < message->columns; i++) {
        const struct model_column *column = &columns[i];
        uint64_t width = column->width ? column->width : 1;
        expect(column->kind <= MODEL_LIST, "a column is of no kind");
        expect(column->data + bytes_of[column->kind] * width * column->count <= message->bytes,
               "a column lies outside its message");
        const uint32_t *ends = (const uint32_t *)(base + column->ends);
        if (column->ends && column->records)
            expect(ends[column->records - 1] == column->count, "parts are not all of a column");
        if (!column->ends)
            expect(column->count == column->records, "a column has not one value for each record");
        if (column->kind == MODEL_TEXT)
            walk_texts(base, message, column);
    }
}

static void ask(struct model *model, struct bytes *bytes)
{
    uint8_t question = (uint8_t)take(bytes, 1);
    const uint32_t home[] = {question, 3, 1};
    const struct model_status status = {question % PIDS, 3, question, 1000 * question};
    const void *frame_data;
    switch (question % 8) {
    case 0:
        walk(model_history(model));
        break;
    case 2:
        frame_data = model_explain(model, (question / 8u) % PIDS);
        if (frame_data)
            walk(frame_data);
        break;
    case 3:
        model_set_window(model, (int64_t)take(bytes, question / 32) - 7);
        break;
    case 4:
        model_own(model, home, 3);
        break;
    case 5:
        model_status(model, &status, 1);
        break;
    case 6:
        model_reach(model, (int64_t)take(bytes, question / 32));
        break;
    default:
        walk(model_frame(model, question));
    }
}

static void play(struct model *model, struct bytes *bytes)
{
    struct trace_record records[AT_ONCE];
    uint64_t now = 0;
    while (bytes->left > 0) {
        size_t count = 0, most = 1 + take(bytes, 1) % AT_ONCE;
        while (count < most && bytes->left > 0)
            records[count++] = record(bytes, &now);
        model_feed(model, records, count);
        ask(model, bytes);
    }
}

static void *memory(void)
{
    void *match = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(match != MAP_FAILED, "there is no memory");
    return match;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const policies[] = {"rr",   "mlfq",     "lottery", "priority:study1",
                                           "wrr:", "nonsense", "hybrid",  "rr:table-scan"};
    struct bytes bytes = {data, size};
    const struct trace_header header = {
        .magic = TRACE_MAGIC,
        .version = TRACE_VERSION,
        .header_bytes = sizeof(header),
        .record_bytes = sizeof(struct trace_record),
        .cpus = CPUS,
        .tick_ns = take(&bytes, 4),
        .cycles_per_second = 1000000000,
    };
    const char *policy = policies[take(&bytes, 1) % 8];
    void *place = memory();
    struct model *model = model_begin(place, MEMORY, &header, sizeof(header), policy,
                                      strlen(policy), (uint32_t)take(&bytes, 1) % 5);
    expect(model, "a model does not begin");
    play(model, &bytes);
    walk(model_frame(model, 2000));
    walk(model_history(model));
    munmap(place, MEMORY);
    return 0;
}
