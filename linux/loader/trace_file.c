/* SPDX-License-Identifier: MIT */

#include "trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define CHUNK_RECORDS 32768 /* 1 MiB */
#define RESERVE_BYTES (256ull << 20)
#define HURRY_MS      2000 /* time for a reader per step, once the trace must end */

/* Records that wait to be written; several chunks only in memory. */
struct record_chunk {
    struct record_chunk *next;
    size_t used;
    struct trace_record records[CHUNK_RECORDS];
};

/* Returns false if there is no reader, or it does not read and the trace must end. */
static bool wait_for_reader(const struct trace_file *file)
{
    struct pollfd wait[] = {{.fd = file->descriptor, .events = POLLOUT},
                            {.fd = file->hurry, .events = POLLIN}};
    while (poll(wait, 2, -1) < 0 && errno == EINTR)
        ;
    return wait[0].revents || poll(wait, 1, HURRY_MS) > 0;
}

static void write_bytes(struct trace_file *file, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0 && !file->error) {
        ssize_t written = write(file->descriptor, at, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN && wait_for_reader(file))
            continue;
        if (written < 0) {
            file->error = errno;
            return;
        }
        at += written;
        size -= (size_t)written;
    }
}

static void write_chunk(struct trace_file *file, struct record_chunk *chunk)
{
    write_bytes(file, chunk->records, chunk->used * sizeof(struct trace_record));
    if (file->error)
        file->dropped += chunk->used;
    chunk->used = 0;
}

static void add_chunk(struct trace_file *file)
{
    struct record_chunk *chunk = malloc(sizeof(*chunk));
    if (!chunk)
        return;
    chunk->next = NULL;
    chunk->used = 0;
    *(file->last ? &file->last->next : &file->first) = chunk;
    file->last = chunk;
}

/* Returns space for a record, or null if memory is short. */
static struct trace_record *next_place(struct trace_file *file)
{
    if (!file->last || file->last->used == CHUNK_RECORDS) {
        if (file->last && !file->in_memory)
            write_chunk(file, file->last);
        else
            add_chunk(file);
    }
    struct record_chunk *chunk = file->last;
    return chunk && chunk->used < CHUNK_RECORDS ? &chunk->records[chunk->used++] : NULL;
}

/* Returns `value`, or the previous value if that is larger. */
static uint64_t not_before(uint64_t value, uint64_t *before)
{
    if (value > *before)
        *before = value;
    return *before;
}

static bool counts_cycles(const struct trace_record *record)
{
    return record->kind == TRACE_START || record->kind == TRACE_SCHEDULER_ENTER ||
           record->kind == TRACE_SCHEDULER_EXIT;
}

/*
 * The kernel's tracing clock may step back by some nanoseconds when it is
 * adjusted; in a trace a CPU's time never does.
 */
static void keep(struct trace_file *file, const struct trace_record *record)
{
    struct trace_record *place = next_place(file);
    if (!place) {
        file->dropped++;
        return;
    }
    struct cpu_progress *cpu = &file->cpu[record->cpu];
    *place = *record;
    place->time = not_before(record->time, &cpu->time);
    if (counts_cycles(record))
        place->second = not_before(record->second, &cpu->cycles);
    cpu->records++;
}

/* Returns the free bytes of the file's disk; UINT64_MAX: it is on none, or that is not known. */
static uint64_t free_bytes(const struct trace_file *file)
{
    struct statvfs disk;
    if (file->is_stream || file->in_memory || fstatvfs(file->descriptor, &disk))
        return UINT64_MAX;
    return (uint64_t)disk.f_bavail * disk.f_frsize;
}

/* UINT64_MAX: not known. */
static uint64_t available_memory_bytes(void)
{
    char line[128];
    uint64_t kib = UINT64_MAX >> 10;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib << 10;
}

enum trace_problem trace_file_problem(const struct trace_file *file)
{
    if (file->room <= file->margin)
        return TRACE_LIMIT_REACHED;
    return free_bytes(file) < file->reserve ? TRACE_DISK_FULL : TRACE_GOES_ON;
}

int trace_file_open(struct trace_file *file, const char *path, const struct trace_header *header,
                    uint64_t limit_bytes, bool in_memory)
{
    struct stat status;
    *file = (struct trace_file){.header = *header, .hurry = -1, .in_memory = in_memory};
    uint64_t most = in_memory ? available_memory_bytes() / 2 : UINT64_MAX;
    file->room = (limit_bytes < most ? limit_bytes : most) / sizeof(struct trace_record);
    file->margin = in_memory ? file->room / 8 : 0;
    file->descriptor = trusted_create(path, O_WRONLY | O_NONBLOCK, 0644, file->why);
    if (file->descriptor < 0)
        return file->descriptor;
    file->is_stream = fstat(file->descriptor, &status) || !S_ISREG(status.st_mode);
    uint64_t half = free_bytes(file) / 2;
    file->reserve = half < RESERVE_BYTES ? half : RESERVE_BYTES;
    write_bytes(file, &file->header, sizeof(file->header));
    int error = file->error;
    if (error)
        trace_file_abandon(file);
    return -error;
}

void trace_file_take(struct trace_file *file, const struct trace_record *record)
{
    if ((file->room == 0 && file->in_memory) || record->cpu >= HOST_CPUS) {
        file->dropped++;
        return;
    }
    file->room -= file->room > 0;
    if (record->cpu >= file->header.cpus)
        file->header.cpus = record->cpu + 1u; /* it did not exist when the trace began */
    keep(file, record);
}

void trace_file_flush(struct trace_file *file)
{
    if (!file->in_memory && file->last)
        write_chunk(file, file->last);
}

/* Writes each CPU's final record; for a CPU without records, its first record, too. */
static void add_ends(struct trace_file *file, uint64_t time, uint32_t sequence, uint64_t lost)
{
    for (uint32_t cpu = 0; cpu < file->header.cpus && cpu < HOST_CPUS; cpu++) {
        struct trace_record record = {.time = time, .cpu = (uint16_t)cpu};
        const struct {
            bool is_reported;
            enum trace_kind kind;
            uint64_t second;
        } words[] = {
            {file->cpu[cpu].records == 0, TRACE_START, time},
            {cpu == 0 && lost > 0, TRACE_LOST, lost},
            {true, TRACE_END, 0},
        };
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            if (!words[i].is_reported)
                continue;
            record.kind = (uint16_t)words[i].kind;
            record.sequence = sequence++;
            record.second = words[i].second;
            if (record.kind == TRACE_END)
                record.second = file->cpu[cpu].records + 1;
            keep(file, &record);
        }
    }
}

static void free_first_chunk(struct trace_file *file)
{
    struct record_chunk *next = file->first->next;
    free(file->first);
    file->first = next;
}

static void close_file(struct trace_file *file)
{
    if (close(file->descriptor) && !file->error)
        file->error = errno;
    while (file->first)
        free_first_chunk(file);
    file->last = NULL;
}

/* CPUs may have been added since the trace began. */
static void complete_header(struct trace_file *file)
{
    ssize_t size = sizeof(file->header);
    if (file->error || file->is_stream)
        return;
    if (pwrite(file->descriptor, &file->header, (size_t)size, 0) != size)
        file->error = errno;
}

int trace_file_finish(struct trace_file *file, uint64_t time, uint32_t sequence, uint64_t lost)
{
    add_ends(file, time, sequence, lost + file->dropped);
    while (file->first) { /* a guest's file is in memory, too: avoids storing any record twice */
        write_chunk(file, file->first);
        free_first_chunk(file);
    }
    complete_header(file);
    close_file(file);
    return -file->error;
}

void trace_file_abandon(struct trace_file *file)
{
    close_file(file);
}

uint64_t trace_file_records(const struct trace_file *file)
{
    uint64_t records = 0;
    for (uint32_t cpu = 0; cpu < HOST_CPUS; cpu++)
        records += file->cpu[cpu].records;
    return records;
}
