/* SPDX-License-Identifier: MIT */

/* Workloads as files for the program `play`. */

#include "sim/compile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/workload_file.h"
#include "sim/machine.h"

/* A file that is written twice: first only its checksum is made. */
struct output {
    FILE *file; /* null: the first time */
    uint64_t checksum;
    bool failed;
};

static void put(struct output *output, const void *bytes, size_t count)
{
    if (output->file)
        output->failed |= fwrite(bytes, 1, count, output->file) != count;
    else
        output->checksum = workload_file_checksum(output->checksum, bytes, count);
}

static void put_programs(struct output *output, const struct simulator_workload *workload)
{
    struct workload_file_program next = {0};
    for (uint32_t i = 0; i < workload->program_count; i++) {
        next.count = workload->programs[i].count;
        put(output, &next, sizeof(next));
        next.first += next.count;
        next.name += (uint32_t)strlen(workload->programs[i].name) + 1;
    }
    for (uint32_t i = 0; i < workload->program_count; i++) {
        const struct simulator_program *program = &workload->programs[i];
        put(output, program->steps, program->count * sizeof(*program->steps));
    }
}

/* The bytes of all names. */
static uint32_t name_bytes(const struct simulator_workload *workload)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < workload->program_count; i++)
        bytes += (uint32_t)strlen(workload->programs[i].name) + 1;
    return bytes;
}

/* Names of programs come first, then the texts. */
static void put_texts(struct output *output, const struct simulator_workload *workload)
{
    uint32_t place = name_bytes(workload);
    for (uint32_t i = 0; i < workload->text_count; i++) {
        put(output, &place, sizeof(place));
        place += (uint32_t)strlen(workload->texts[i]) + 1;
    }
    for (uint32_t i = 0; i < workload->program_count; i++)
        put(output, workload->programs[i].name, strlen(workload->programs[i].name) + 1);
    for (uint32_t i = 0; i < workload->text_count; i++)
        put(output, workload->texts[i], strlen(workload->texts[i]) + 1);
}

static void put_contents(struct output *output, const struct simulator_workload *workload)
{
    put_programs(output, workload);
    put(output, workload->channels, workload->channel_count * sizeof(*workload->channels));
    put_texts(output, workload);
}

static struct workload_file_header make_header(const struct simulator_workload *workload,
                                               uint64_t tick_ns)
{
    struct output counted = {.checksum = WORKLOAD_FILE_CHECKSUM_BEGIN};
    struct workload_file_header header = {
        .magic = WORKLOAD_FILE_MAGIC,
        .version = WORKLOAD_FILE_VERSION,
        .header_bytes = sizeof(header),
        .tick_ns = tick_ns,
        .program_count = workload->program_count,
        .channel_count = workload->channel_count,
        .text_count = workload->text_count,
        .text_bytes = name_bytes(workload),
    };
    for (uint32_t i = 0; i < workload->program_count; i++)
        header.step_count += workload->programs[i].count;
    for (uint32_t i = 0; i < workload->text_count; i++)
        header.text_bytes += (uint32_t)strlen(workload->texts[i]) + 1;
    header.bytes = workload_file_bytes(&header);
    put_contents(&counted, workload);
    header.checksum = counted.checksum;
    return header;
}

bool simulator_compile(const struct simulator_workload *workload, uint64_t tick_ns,
                       const char *path, struct simulator_error *error)
{
    struct workload_file_header header = make_header(workload, tick_ns);
    struct output output = {.file = fopen(path, "wb")};
    if (output.file) {
        put(&output, &header, sizeof(header));
        put_contents(&output, workload);
        output.failed |= fclose(output.file) != 0;
    }
    if (!output.file || output.failed) {
        set_error(error, "%s cannot be written: %s", path, strerror(errno));
        return false;
    }
    return true;
}
