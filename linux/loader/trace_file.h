/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_TRACE_FILE_H
#define LINUX_LOADER_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/trace_format.h"

#include "linux/bpf/shared.h"

#include "trusted_path.h"

/*
 * An event trace's file while it is written. Takes records in the order of each
 * CPU, and keeps them in memory or writes them. Adds what the kernel cannot
 * know: the END of each CPU, and the number of lost records.
 */

struct record_chunk;

/* The state of a CPU according to its records so far. */
struct cpu_progress {
    uint64_t records;
    uint64_t time;
    uint64_t cycles;
};

struct trace_file {
    struct trace_header header;
    int descriptor;
    int hurry;                   /* readable when waiting for a reader must stop; -1: never */
    char why[TRUSTED_WHY_BYTES]; /* the part of its path that is not trusted */
    int error;                   /* errno of the first failed write; 0: none */
    bool is_stream;              /* a pipe or a device: its beginning cannot be rewritten */
    bool in_memory;              /* nothing is written until the end */
    uint64_t room;               /* records until the limit */
    uint64_t margin;             /* the trace must end this many records before it */
    uint64_t reserve;            /* bytes of the disk that must stay free */
    uint64_t dropped;            /* records beyond the limit, or that could not be written */
    struct record_chunk *first;
    struct record_chunk *last;
    struct cpu_progress cpu[HOST_CPUS];
};

/*
 * Creates the file, on a trusted path, and writes its header. The file may be a pipe with a reader,
 * or a character device. Writing waits for its reader, until `hurry` is readable; the kernel's ring
 * buffers records in the meantime. `limit_bytes`: the most that records may use. If `in_memory`,
 * records stay in memory until the end, may use half of the available memory, and are dropped
 * beyond the limit. Returns 0, or a negative errno with nothing to close; `why` may give details.
 */
int trace_file_open(struct trace_file *file, const char *path, const struct trace_header *header,
                    uint64_t limit_bytes, bool in_memory);

/* Takes a record of the kernel. A CPU's records come in their order. */
void trace_file_take(struct trace_file *file, const struct trace_record *record);

/* Writes the taken records, unless they must stay in memory. */
void trace_file_flush(struct trace_file *file);

/*
 * Ends the trace of all CPUs at `time`. The records for that have sequence
 * numbers starting at `sequence`. `lost`: records that never arrived. Closes
 * the file. Returns 0, or a negative errno: the file is not complete.
 */
int trace_file_finish(struct trace_file *file, uint64_t time, uint32_t sequence, uint64_t lost);

/* Closes a file that will not be completed. */
void trace_file_abandon(struct trace_file *file);

enum trace_problem {
    TRACE_GOES_ON,
    TRACE_LIMIT_REACHED,
    TRACE_DISK_FULL, /* or nearly so */
};

enum trace_problem trace_file_problem(const struct trace_file *file);

/* Returns the number of records in it. */
uint64_t trace_file_records(const struct trace_file *file);

#endif
