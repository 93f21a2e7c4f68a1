/* SPDX-License-Identifier: MIT */
#ifndef ABI_WORKLOAD_FILE_H
#define ABI_WORKLOAD_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "workload_steps.h"

/*
 * A workload as a file of bytes, little-endian. schedlab makes it from a workload's JSON
 * (python/schedlab/workload/binary_steps.py); the simulator and the program `play` run it. After
 * the header follow, without gaps, in this order:
 *
 *   program_count  struct workload_file_program: the first one is the first process's
 *   step_count     struct workload_step: those of each program in a row, STEP_EXIT last;
 *                  STEP_LOOP's `target` counts from its program's first step
 *   channel_count  uint64_t: the initial number of items in each channel
 *   text_count     uint32_t: the start of each text, in the bytes that follow
 *   text_bytes     names and texts, each followed by a 0
 *
 * So everything lies at a multiple of its size. There are no pointers.
 */
#define WORKLOAD_FILE_MAGIC   0x4b524f57444c4353ull /* "SCLDWORK" */
#define WORKLOAD_FILE_VERSION 2u

struct workload_file_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes; /* of this structure */
    uint64_t bytes;        /* of the file */
    uint64_t checksum;     /* of the bytes after the header */
    uint64_t tick_ns;      /* the tick that the file was made for: the machine's must be equal */
    uint32_t program_count;
    uint32_t step_count;
    uint32_t channel_count;
    uint32_t text_count;
    uint32_t text_bytes;
    uint32_t reserved; /* 0 */
};

struct workload_file_program {
    uint32_t first; /* of its steps, among all */
    uint32_t count;
    uint32_t name; /* its start, in the texts' bytes */
    uint32_t reserved;
};

_Static_assert(sizeof(struct workload_file_header) == 64, "what lies behind it is aligned");
_Static_assert(sizeof(struct workload_file_program) == 16, "a file has no gaps");
_Static_assert(sizeof(struct workload_step) == 16, "a file has no gaps");

/* The size that a file with this header must have. */
static inline uint64_t workload_file_bytes(const struct workload_file_header *header)
{
    uint64_t bytes = sizeof(*header); /* where size_t has 32 bits, too */
    bytes += (uint64_t)sizeof(struct workload_file_program) * header->program_count;
    bytes += (uint64_t)sizeof(struct workload_step) * header->step_count;
    bytes += (uint64_t)sizeof(uint64_t) * header->channel_count;
    bytes += (uint64_t)sizeof(uint32_t) * header->text_count;
    return bytes + header->text_bytes;
}

#define WORKLOAD_FILE_CHECKSUM_BEGIN 0xcbf29ce484222325ull

/* Continues with more bytes, starting with WORKLOAD_FILE_CHECKSUM_BEGIN: FNV-1a (Fowler, Noll,
 * Vo 1991). */
static inline uint64_t workload_file_checksum(uint64_t sum, const void *bytes, uint64_t count)
{
    const uint8_t *next = bytes;
    for (uint64_t i = 0; i < count; i++)
        sum = (sum ^ next[i]) * 0x100000001b3ull;
    return sum;
}

/* Returns what is wrong with a header or with the size of its file, or null. */
static inline const char *workload_file_flaw(const struct workload_file_header *header,
                                             uint64_t bytes)
{
    if (bytes < sizeof(*header) || header->magic != WORKLOAD_FILE_MAGIC)
        return "it is no workload file: `./schedlab workloads` makes one";
    if (header->version != WORKLOAD_FILE_VERSION || header->header_bytes != sizeof(*header))
        return "it is of another version: compile the workload anew";
    if (header->bytes != bytes || workload_file_bytes(header) != bytes)
        return "it is damaged: its size is wrong";
    if (header->checksum !=
        workload_file_checksum(WORKLOAD_FILE_CHECKSUM_BEGIN, header + 1, bytes - sizeof(*header)))
        return "it is damaged: its checksum is wrong";
    return NULL;
}

/* The places of all parts in a file of the right size. */
struct workload_file_contents {
    const struct workload_file_header *header;
    const struct workload_file_program *programs;
    const struct workload_step *steps;
    const uint64_t *channels;
    const uint32_t *texts;
    const char *characters; /* of names and texts */
};

static inline struct workload_file_contents
workload_file_contents(const struct workload_file_header *header)
{
    struct workload_file_contents file = {.header = header};
    file.programs = (const void *)(header + 1);
    file.steps = (const void *)(file.programs + header->program_count);
    file.channels = (const void *)(file.steps + header->step_count);
    file.texts = (const void *)(file.channels + header->channel_count);
    file.characters = (const void *)(file.texts + header->text_count);
    return file;
}

#endif
