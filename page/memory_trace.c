/* SPDX-License-Identifier: MIT */

#include "page/memory_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/trace_file.h"

static struct trace_header header;
static bool has_header;
static unsigned char *trace_memory;
static size_t trace_bytes;
static size_t room;

bool trace_file_open(struct trace *trace, const char *path)
{
    (void)path;
    has_header = false;
    trace->file = 0;
    return true;
}

bool trace_file_write(struct trace *trace, const void *data, size_t bytes)
{
    if (trace->error)
        return false;
    if (!has_header) { /* it is written at once, before any record */
        memcpy(&header, data, bytes);
        has_header = true;
        return true;
    }
    if (trace_bytes + bytes > room) {
        size_t requested = 2 * (trace_bytes + bytes);
        unsigned char *more = realloc(trace_memory, requested);
        if (!more) {
            trace->error = ENOMEM;
            return false;
        }
        trace_memory = more;
        room = requested;
    }
    memcpy(trace_memory + trace_bytes, data, bytes);
    trace_bytes += bytes;
    return true;
}

void trace_file_close(struct trace *trace)
{
    (void)trace;
}

const struct trace_header *memory_trace_header(void)
{
    return &header;
}

const unsigned char *memory_trace_take(size_t *bytes)
{
    *bytes = trace_bytes;
    trace_bytes = 0;
    return trace_memory;
}
