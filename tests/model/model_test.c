/* SPDX-License-Identifier: MIT */

/* A model with the minimum of memory: if memory runs out, the window becomes shorter. */

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/process_info.h"
#include "abi/trace_format.h"
#include "model/model.h"

#define MEMORY ((size_t)MODEL_MEMORY_MIN)
#define SECOND INT64_C(1000000000)

static const struct trace_header header = {
    .magic = TRACE_MAGIC,
    .version = TRACE_VERSION,
    .header_bytes = sizeof(header),
    .record_bytes = sizeof(struct trace_record),
    .cpus = 2,
    .tick_ns = 1000000,
    .cycles_per_second = 1000000000,
};

static void *pages(size_t bytes)
{
    void *match = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(match != MAP_FAILED);
    return match;
}

static struct model *begin(void)
{
    struct model *model = model_begin(pages(MEMORY), MEMORY, &header, sizeof(header), "rr", 2, 0);
    assert(model);
    return model;
}

static void end(struct model *model)
{
    munmap(model, MEMORY);
}

/* Feeds records in batches, as monitors do. */
static struct trace_record records[4096];
static size_t record_count;

static void flush(struct model *model)
{
    model_feed(model, records, record_count);
    record_count = 0;
}

static void feed(struct model *model, uint16_t kind, uint64_t time, uint32_t process,
                 uint32_t first, uint64_t second)
{
    records[record_count++] = (struct trace_record){
        .time = time, .process = process, .kind = kind, .first = first, .second = second};
    if (record_count == sizeof(records) / sizeof(records[0]))
        flush(model);
}

static const void *frame(struct model *model)
{
    flush(model);
    return model_frame(model, 100);
}

static const struct model_column *find(const void *frame_data, const char *name)
{
    const struct model_message *message = frame_data;
    const struct model_column *column = (const struct model_column *)(message + 1);
    assert(frame_data);
    for (uint32_t i = 0; i < message->columns; i++, column++) {
        if (strlen(name) == column->name_bytes &&
            memcmp((const char *)frame_data + column->name, name, column->name_bytes) == 0)
            return column;
    }
    abort();
}

static int64_t number(const void *frame_data, const char *name)
{
    const struct model_column *column = find(frame_data, name);
    assert(column->kind == MODEL_I64 && column->count == 1);
    return *(const int64_t *)((const char *)frame_data + column->data);
}

static void no_model_of_what_is_no_trace(void)
{
    struct trace_header other = header;
    void *memory = pages(MEMORY);
    assert(!model_begin(memory, MEMORY - 1, &header, sizeof(header), "", 0, 0));
    assert(!model_begin(memory, MEMORY, &header, sizeof(header) - 1, "", 0, 0));
    other.cpus = 0;
    assert(!model_begin(memory, MEMORY, &other, sizeof(other), "", 0, 0));
    other.cpus = 65536; /* each needs some hundred bytes */
    other.cycles_per_second = 0;
    assert(!model_begin(memory, MEMORY, &other, sizeof(other), "", 0, 0));
    munmap(memory, MEMORY);
}

/* Two processes alternate faster than memory allows. */
static void the_window_becomes_shorter(void)
{
    struct model *model = begin();
    uint64_t time = 0;
    feed(model, TRACE_FORK, time, 0, 1, 0);
    feed(model, TRACE_FORK, time, 0, 2, 0);
    feed(model, TRACE_SWITCH, time, 1, 0, 0);
    for (uint32_t i = 0; i < 2000000; i++)
        feed(model, TRACE_SWITCH, time += 100, 2 - i % 2, 1 + i % 2, PROCESS_RUNNABLE);
    const void *frame_data = frame(model);
    int64_t window = number(frame_data, "metrics.window_ns");
    assert(window > SECOND / 100 &&
           window < SECOND / 5); /* at least 100,000 of 2,000,000 switches */
    assert(find(frame_data, "timeline.runs")->count < 120);
    const double *share =
        (const double *)((const char *)frame_data + find(frame_data, "processes.share")->data);
    /* The first process is not part of the workload; the other is the whole workload. */
    assert(share[0] > 0.999 && share[0] < 1.001 && share[1] == 1);
    end(model);
}

/* More than can be alive, and more than the model can remember. */
static void there_is_room_for_so_many_processes(void)
{
    struct model *model = begin();
    uint64_t time = 0;
    for (uint32_t pid = 1; pid < 100000; pid++) {
        feed(model, TRACE_FORK, time += 10, 0, pid, 0);
        feed(model, TRACE_SWITCH, time, pid, 0, 0);
        feed(model, TRACE_EXIT, time += 10, pid, 0, 0);
        feed(model, TRACE_SWITCH, time, 0, pid, PROCESS_ZOMBIE);
    }
    int64_t finished = number(frame(model), "metrics.finished");
    assert(finished > 5000 && finished < 99999);
    for (uint32_t pid = 100000; pid < 200000; pid++)
        feed(model, TRACE_FORK, time += 10, 0, pid, 0);
    uint32_t living = find(frame(model), "processes.pid")->count;
    assert(living > 5000 && living < 100000);
    for (uint32_t pid = 100000; pid < 200000; pid++) {
        feed(model, TRACE_SWITCH, time += 10, pid, 0, 0);
        feed(model, TRACE_SWITCH, time += 10, 0, pid, PROCESS_ZOMBIE);
    }
    assert(find(frame(model), "processes.pid")->count == 0);
    end(model);
}

int main(void)
{
    no_model_of_what_is_no_trace();
    the_window_becomes_shorter();
    there_is_room_for_so_many_processes();
    return 0;
}
