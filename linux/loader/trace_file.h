/* SPDX-License-Identifier: MIT */
#ifndef LINUX_LOADER_TRACE_FILE_H
#define LINUX_LOADER_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/trace_format.h"

#include "linux/bpf/shared.h"

#include "trusted_path.h"

/*
 * The file of an event trace, in the making: takes records in the order of each
 * CPU, keeps them in memory or writes them on, and completes what a trace needs
 * that the kernel cannot know: the END of each CPU, and how much was lost.
 */

struct record_chunk;

/* What a CPU's records have said so far. */
struct cpu_progress {
    uint64_t records;
    uint64_t time;
    uint64_t cycles;
};

struct trace_file {
    struct trace_header header;
    int descriptor;
    int hurry; /* readable once there is no time left to wait for a reader; -1: there always is */
    char why[TRUSTED_WHY_BYTES]; /* what of its path is not to be trusted */
    int error;                   /* errno of the first write that failed; 0 */
    bool is_stream;              /* a pipe or a device: its beginning cannot be written again */
    bool in_memory;              /* nothing is written until the end */
    uint64_t room;               /* records until the limit */
    uint64_t margin;             /* so many before it, the trace is to end */
    uint64_t reserve;            /* bytes of the disk that are to stay free */
    uint64_t dropped; /* records for which there was no room, or that could not be written */
    struct record_chunk *first;
    struct record_chunk *last;
    struct cpu_progress cpu[HOST_CPUS];
};

/*
 * Makes the file, on a way that is to be trusted, and writes its header. It may be a pipe that
 * has a reader, or a character device. Writing waits for its reader, as long as `hurry` allows;
 * the kernel's ring takes what comes meanwhile. `limit_bytes`: what records may take. If
 * `in_memory`, they stay there until the end, may take half of the memory that is available, and
 * those beyond the limit are dropped. Returns 0, or a negative errno, and nothing needs to be
 * closed; `why` may tell more.
 */
int trace_file_open(struct trace_file *file, const char *path, const struct trace_header *header,
                    uint64_t limit_bytes, bool in_memory);

/* A record of the kernel. Those of a CPU come in their order. */
void trace_file_take(struct trace_file *file, const struct trace_record *record);

/* Writes what was taken, unless it is to stay in memory. */
void trace_file_flush(struct trace_file *file);

/*
 * Ends the story of all CPUs at `time`; the records that says so have sequence
 * numbers from `sequence` on. `lost`: records that never got here. Closes the
 * file. Returns 0, or a negative errno: the file is not complete.
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

/* Returns how many records are in it. */
uint64_t trace_file_records(const struct trace_file *file);

#endif
