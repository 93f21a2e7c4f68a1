/* SPDX-License-Identifier: MIT */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "abi/trace_format.h"

/* Writes the trace: one stream of records in order, through a buffer. */
struct trace {
    struct trace_record *next; /* null: no tracing */
    struct trace_record *end;
    struct trace_record *buffer;
    uint64_t records;
    int file;
    int error; /* errno of a failed write; 0: none */
};

/* Empties the buffer into the file. */
void trace_flush(struct trace *trace);

static inline void trace_write(struct trace *trace, uint64_t time, uint32_t cpu,
                               enum trace_kind kind, uint32_t process, uint32_t first,
                               uint64_t second)
{
    *trace->next++ = (struct trace_record){
        .time = time,
        .sequence = (uint32_t)trace->records++,
        .process = process,
        .kind = (uint16_t)kind,
        .cpu = (uint16_t)cpu,
        .first = first,
        .second = second,
    };
    if (trace->next == trace->end)
        trace_flush(trace);
}

#endif
