/* SPDX-License-Identifier: MIT */

/* A workload from a text or a file, whole or not at all. */

#include "sim/workload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/checks.h"
#include "sim/machine.h"
#include "sim/workload_reader.h"

static void check_drafts(struct reader *reader)
{
    if (reader->drafts.count == 0)
        complain(reader, "a program: `program NAME`", NULL);
    for (uint32_t i = 0; i < reader->drafts.count && !reader->failed; i++) {
        const struct draft *draft = draft_at(reader, i);
        if (!draft->begun) {
            reader->failed = true;
            set_error(reader->error, "%s:%" PRIu32 ": %s: expected the name of a program",
                      reader->name, draft->line, draft->name);
        }
    }
}

static void hand_over(struct reader *reader, struct simulator_workload *workload)
{
    struct simulator_program *programs = calloc(reader->drafts.count, sizeof(*programs));
    if (!programs) {
        complain(reader, "less: there is no memory for so large a workload", NULL);
        return;
    }
    for (uint32_t i = 0; i < reader->drafts.count; i++) {
        struct draft *draft = draft_at(reader, i);
        programs[i] =
            (struct simulator_program){strdup(draft->name), draft->steps.items, draft->steps.count};
        draft->steps.items = NULL;
    }
    *workload = (struct simulator_workload){
        .programs = programs,
        .program_count = reader->drafts.count,
        .texts = (const char *const *)reader->texts.items,
        .text_count = reader->texts.count,
        .channels = reader->channels.items,
        .channel_count = reader->channels.count,
    };
    reader->texts = reader->channels = (struct array){0};
}

static void free_reader(struct reader *reader)
{
    for (uint32_t i = 0; i < reader->drafts.count; i++)
        free(draft_at(reader, i)->steps.items);
    for (uint32_t i = 0; i < reader->texts.count; i++)
        free(((char **)reader->texts.items)[i]);
    free(reader->drafts.items);
    free(reader->texts.items);
    free(reader->channels.items);
    free(reader->channel_names.items);
    free(reader->timer_names.items);
    free(reader->draft_table.places);
    free(reader->channel_table.places);
    free(reader->timer_table.places);
}

bool simulator_read_workload(struct simulator_workload *workload, const char *name,
                             const char *text, uint64_t tick_ns, struct simulator_error *error)
{
    struct reader reader = {.name = name, .tick_ns = tick_ns, .error = error};
    if (!check_tick(tick_ns, error))
        return false;
    read_lines(&reader, text);
    if (!reader.failed)
        check_drafts(&reader);
    if (!reader.failed)
        hand_over(&reader, workload);
    free_reader(&reader);
    return !reader.failed;
}

void simulator_free_workload(struct simulator_workload *workload)
{
    for (uint32_t i = 0; i < workload->program_count; i++) {
        free((void *)(uintptr_t)workload->programs[i].name);
        free((void *)(uintptr_t)workload->programs[i].steps);
    }
    for (uint32_t i = 0; i < workload->text_count; i++)
        free((void *)(uintptr_t)workload->texts[i]);
    free((void *)(uintptr_t)workload->programs);
    free((void *)(uintptr_t)workload->texts);
    free((void *)(uintptr_t)workload->channels);
    *workload = (struct simulator_workload){0};
}

/* Returns everything that is left in the file, with a 0 after it, or null; errno says why. */
static char *read_all(FILE *file, size_t *bytes)
{
    char *text = NULL;
    size_t room = 0;
    *bytes = 0;
    while (!feof(file)) {
        if (*bytes + 1 >= room) {
            room = room ? 2 * room : 65536;
            char *more = realloc(text, room);
            if (!more)
                break;
            text = more;
        }
        *bytes += fread(text + *bytes, 1, room - *bytes - 1, file);
        if (ferror(file))
            break;
    }
    if (!feof(file)) {
        free(text);
        return NULL;
    }
    text[*bytes] = '\0';
    return text;
}

/* Returns the whole file as text, or null and the error. */
static char *read_file(const char *path, struct simulator_error *error)
{
    size_t bytes = 0;
    bool standard_input = strcmp(path, "-") == 0;
    FILE *file = standard_input ? stdin : fopen(path, "rb");
    char *text = file ? read_all(file, &bytes) : NULL;
    if (!text)
        set_error(error, "%s: it cannot be read: %s", path, strerror(errno));
    if (file && !standard_input)
        fclose(file);
    if (text && memchr(text, '\0', bytes)) {
        set_error(error, "%s: it is no text: it has bytes of value 0", path);
        free(text);
        return NULL;
    }
    return text;
}

bool simulator_load_workload(struct simulator_workload *workload, const char *path,
                             uint64_t tick_ns, struct simulator_error *error)
{
    char *text = read_file(path, error);
    bool read = text && simulator_read_workload(workload, path, text, tick_ns, error);
    free(text);
    return read;
}
