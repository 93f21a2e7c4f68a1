/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_TRACE_TRACE_BUFFER_H
#define KERNEL_TRACE_TRACE_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/trace_format.h"

/*
 * One CPU's blocks of trace records, for trace/trace.c; accessed only by that CPU, except the
 * fields that LOCK_TRACE guards. It lies in struct cpu, so that a record costs one address less.
 */
#define TRACE_BLOCKS 8
struct trace_buffer {
    struct trace_record *next; /* null: no tracing */
    struct trace_record *end;
    struct trace_record *block[TRACE_BLOCKS];
    bool full[TRACE_BLOCKS];   /* waits to leave: guarded by LOCK_TRACE */
    uint32_t current;          /* block being filled */
    struct trace_record *kept; /* the first record of that block that has not joined the queue */
    bool part_waits;           /* records of a block that was not full: guarded by LOCK_TRACE */
    uint64_t left;             /* nanoseconds; when records last joined that queue */
    uint64_t records;
};

#endif
