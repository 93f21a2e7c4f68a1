/* SPDX-License-Identifier: MIT */

/* Reads a workload from a file, completely or not at all. */

#include "sim/workload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/workload_file.h"
#include "sim/checks.h"
#include "sim/machine.h"

/* Returns true if a text begins at this position, after the end of the previous text. Texts
 * therefore never overlap, and reading all texts takes time proportional to the file's length. */
static bool begins_text(const struct workload_file_contents *file, uint32_t place, uint32_t *next)
{
    bool begins = place >= *next && place < file->header->text_bytes &&
                  (place == 0 || file->characters[place - 1] == '\0');
    *next = place + 1;
    return begins;
}

/* Returns the first error in the contents, or null. The sizes in the header must have been
 * checked. */
static const char *contents_flaw(const struct workload_file_contents *file)
{
    const struct workload_file_header *header = file->header;
    uint32_t steps = 0;
    uint32_t next = 0;
    if (header->text_bytes > 0 && file->characters[header->text_bytes - 1] != '\0')
        return "it is damaged: its last text is not terminated";
    for (uint32_t i = 0; i < header->program_count; i++) {
        const struct workload_file_program *program = &file->programs[i];
        if (program->first != steps || program->count > header->step_count - steps)
            return "it is damaged: a program's steps are misplaced";
        if (!begins_text(file, program->name, &next))
            return "it is damaged: a program's name is misplaced";
        steps += program->count;
    }
    for (uint32_t i = 0; i < header->text_count; i++) {
        if (!begins_text(file, file->texts[i], &next))
            return "it is damaged: a text is not where it must be";
    }
    return steps == header->step_count ? NULL : "it is damaged: steps belong to no program";
}

/* Copies the workload into one piece of memory: the arrays of pointers, and after them the file.
 * Returns false if memory is short. */
static bool hand_over(struct simulator_workload *workload, const void *bytes, uint64_t count)
{
    const struct workload_file_header *header = bytes;
    uint64_t text_place = (uint64_t)header->program_count * sizeof(struct simulator_program);
    uint64_t file_place = (text_place + header->text_count * sizeof(char *) + 7) / 8 * 8;
    char *memory = file_place + count <= SIZE_MAX ? malloc((size_t)(file_place + count)) : NULL;
    if (!memory)
        return false;
    struct simulator_program *programs = (void *)memory;
    const char **texts = (void *)(memory + text_place);
    struct workload_file_contents file =
        workload_file_contents(memcpy(memory + file_place, bytes, (size_t)count));
    for (uint32_t i = 0; i < header->program_count; i++) {
        programs[i] =
            (struct simulator_program){file.characters + file.programs[i].name,
                                       file.steps + file.programs[i].first, file.programs[i].count};
    }
    for (uint32_t i = 0; i < header->text_count; i++)
        texts[i] = file.characters + file.texts[i];
    *workload = (struct simulator_workload){
        .programs = programs,
        .program_count = header->program_count,
        .texts = texts,
        .text_count = header->text_count,
        .channels = file.channels,
        .channel_count = header->channel_count,
    };
    return true;
}

bool simulator_read_workload(struct simulator_workload *workload, const char *name,
                             const void *bytes, uint64_t count, uint64_t tick_ns,
                             struct simulator_error *error)
{
    const struct workload_file_header *header = bytes;
    const char *flaw = workload_file_flaw(header, count);
    if (!flaw) {
        struct workload_file_contents file = workload_file_contents(header);
        flaw = contents_flaw(&file);
    }
    if (!flaw && header->tick_ns != tick_ns) {
        set_error(error, "%s: compiled for a tick of %" PRIu64 " ns, not %" PRIu64, name,
                  header->tick_ns, tick_ns);
        return false;
    }
    if (!flaw && !check_tick(tick_ns, error))
        return false;
    if (!flaw && !hand_over(workload, bytes, count))
        flaw = "out of memory: the workload is too large";
    if (flaw)
        set_error(error, "%s: %s", name, flaw);
    return !flaw;
}

void simulator_free_workload(struct simulator_workload *workload)
{
    free((void *)(uintptr_t)workload->programs);
    *workload = (struct simulator_workload){0};
}

/* Returns the rest of the file, or null; errno gives the reason. */
static void *read_all(FILE *file, uint64_t *count)
{
    char *bytes = NULL;
    size_t room = 0;
    *count = 0;
    while (!feof(file)) {
        if (*count == room) {
            room = room ? 2 * room : 65536;
            char *more = realloc(bytes, room);
            if (!more)
                break;
            bytes = more;
        }
        *count += fread(bytes + *count, 1, room - *count, file);
        if (ferror(file))
            break;
    }
    if (feof(file))
        return bytes;
    free(bytes);
    return NULL;
}

bool simulator_load_workload(struct simulator_workload *workload, const char *path,
                             uint64_t tick_ns, struct simulator_error *error)
{
    uint64_t count = 0;
    bool standard_input = strcmp(path, "-") == 0;
    FILE *file = standard_input ? stdin : fopen(path, "rb");
    void *bytes = file ? read_all(file, &count) : NULL;
    if (!bytes)
        set_error(error, "%s: cannot be read: %s", path, strerror(errno));
    if (file && !standard_input)
        fclose(file);
    bool read = bytes && simulator_read_workload(workload, path, bytes, count, tick_ns, error);
    free(bytes);
    return read;
}
