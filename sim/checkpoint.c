/* SPDX-License-Identifier: MIT */

/*
 * Machines in files. A file has what the machine is made of and all that was done to it
 * (sim/recipe.h), not its memory: only a policy can tell its own lists, heaps and trees
 * from crafted ones, and one wrong pointer in them reads or writes anywhere. So the machine is made
 * anew, and all is done to it again, by the functions that check what they are asked for. That
 * takes as long as the run took, without its trace.
 *
 * A file is a header, and the recipe.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/control.h"
#include "sim/machine.h"
#include "sim/recipe.h"
#include "sim/tracing.h"

#define MAGIC          0x50434d4953424c53ull /* "SLBSIMCP" */
#define FORMAT_VERSION 2
#define BUILD_BYTES    64
#define NO_TRACE       "/dev/null" /* of what is done again */
#define PIECE_TICKS    64
#define FIRST_ROOM     65536

/* A hash of the objects that the simulator is made of: made by sim.mk. */
extern const char build_name[];

struct header {
    uint64_t magic;
    uint32_t version;
    uint32_t bytes;
    char build[BUILD_BYTES];
    uint64_t recipe_bytes;
    uint64_t recipe_checksum;
    uint64_t until;  /* to which it ran last */
    uint32_t ran;    /* since the recipe's last entry */
    uint32_t traced; /* the trace goes on */
    struct simulator_counts counts;
    uint64_t checksum; /* of what is before it */
};

#define CHECKSUM_BEGIN 0xcbf29ce484222325ull

/* No two texts that differ in one word have the same; others by chance. After FNV-1a (Fowler, Noll,
 * Vo 1991), with words and rotations. */
static uint64_t checksum(const void *data, size_t bytes)
{
    const unsigned char *next = data;
    uint64_t sum = CHECKSUM_BEGIN;
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++) {
        uint64_t word;
        memcpy(&word, next + i * sizeof(word), sizeof(word));
        sum ^= word;
        sum = (sum << 29 | sum >> 35) * 0x100000001b3ull;
    }
    return sum;
}

/* ---- writing ---- */

static struct header header_of(const struct simulator *simulator)
{
    const struct recipe *recipe = &simulator->recipe;
    struct header header = {
        .magic = MAGIC,
        .version = FORMAT_VERSION,
        .bytes = sizeof(header),
        .recipe_bytes = recipe->used,
        .recipe_checksum = checksum(recipe->bytes, recipe->used),
        .until = recipe->ran_until,
        .ran = recipe->ran,
        .traced = simulator->trace.next != NULL,
    };
    memcpy(header.build, build_name, BUILD_BYTES);
    simulator_count(simulator, &header.counts);
    header.checksum = checksum(&header, offsetof(struct header, checksum));
    return header;
}

/* False: see errno. */
static bool write_machine(const struct simulator *simulator, FILE *file)
{
    const struct header header = header_of(simulator);
    return fwrite(&header, sizeof(header), 1, file) == 1 &&
           fwrite(simulator->recipe.bytes, simulator->recipe.used, 1, file) == 1 &&
           fflush(file) == 0;
}

/* A new file beside it, of a name that no other file has; the caller frees `name`. Null: see errno.
 */
static FILE *create_beside(const char *path, char **name)
{
    size_t bytes = strlen(path) + 48;
    *name = malloc(bytes);
    int file = -1;
    for (int i = 0; *name && file < 0 && (i == 0 || (errno == EEXIST && i < 100)); i++) {
        snprintf(*name, bytes, "%s.%ld-%d.partial", path, (long)getpid(), i);
        file = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return file < 0 ? NULL : fdopen(file, "wb");
}

/* Writes the whole file, or none. (Checksums show what a loss of power leaves half-written.) */
static bool write_file(const struct simulator *simulator, const char *path,
                       struct simulator_error *error)
{
    char *name = NULL;
    FILE *file = create_beside(path, &name);
    bool good = file && write_machine(simulator, file);
    int problem = errno;
    if (file && fclose(file) != 0 && good) {
        good = false;
        problem = errno;
    }
    if (good && rename(name, path) != 0) {
        good = false;
        problem = errno;
    }
    if (!good) {
        set_error(error, "the checkpoint %s cannot be written: %s", path, strerror(problem));
        if (file)
            unlink(name);
    }
    free(name);
    return good;
}

bool simulator_save(struct simulator *simulator, const char *path, struct simulator_error *error)
{
    if (simulator->trace.next)
        trace_flush(&simulator->trace);
    if (trace_failed(simulator) || simulator->status == SIMULATOR_FAILED) {
        *error = simulator->error;
        return false;
    }
    if (simulator->finished) {
        set_error(error, "the run is finished, and cannot be put aside");
        return false;
    }
    if (simulator->recipe.incomplete) {
        set_error(error, "no memory was left to note what the machine is made of");
        return false;
    }
    return write_file(simulator, path, error);
}

/* ---- reading the file ---- */

static const char damaged[] = "it is damaged";
static const char cut_short[] = "it is cut short";

/* Returns what is wrong, or null if the checkpoint is sound and of this build. */
static const char *header_flaw(const struct header *header)
{
    if (header->magic != MAGIC)
        return "it is no checkpoint";
    if (header->version != FORMAT_VERSION || header->bytes != sizeof(*header))
        return "its format is of another version of the simulator, and only that can continue it";
    if (header->checksum != checksum(header, offsetof(struct header, checksum)))
        return damaged;
    if (memcmp(header->build, build_name, BUILD_BYTES) != 0)
        return "another build of the simulator saved it, and only that can continue it";
    return NULL;
}

/* The recipe, as much of it as there is: a file may say that it is longer than it is. Null: there
 * is no memory. */
static unsigned char *read_recipe(FILE *file, uint64_t wanted, uint64_t *found)
{
    size_t room = FIRST_ROOM;
    unsigned char *bytes = malloc(room);
    *found = 0;
    while (bytes && *found < wanted) {
        if (*found == room) {
            unsigned char *moved = realloc(bytes, room *= 2);
            if (!moved)
                free(bytes);
            bytes = moved;
            continue;
        }
        size_t most = wanted - *found < room - *found ? wanted - *found : room - *found;
        size_t got = fread(bytes + *found, 1, most, file);
        *found += got;
        if (got == 0)
            break;
    }
    return bytes;
}

/* Reads the header and the recipe, which the caller frees. Null, or what is wrong. */
static const char *read_file(FILE *file, struct header *header, unsigned char **recipe)
{
    bool whole = fread(header, sizeof(*header), 1, file) == 1;
    const char *flaw = whole ? header_flaw(header) : "it is no checkpoint, or cut short";
    if (flaw)
        return flaw;
    uint64_t found;
    *recipe = read_recipe(file, header->recipe_bytes, &found);
    if (!*recipe)
        return "there is no memory for it";
    if (found < header->recipe_bytes)
        return cut_short;
    if (found % 8 != 0 || header->recipe_checksum != checksum(*recipe, found) || fgetc(file) != EOF)
        return damaged;
    return NULL;
}

/* ---- reading the recipe ---- */

/* What has not been read yet. It lies at a multiple of 8. */
struct rest {
    unsigned char *next;
    size_t bytes;
};

/* Returns null if there are not that many bytes left. */
static void *take(struct rest *rest, uint64_t count, size_t each)
{
    if (count > rest->bytes / each)
        return NULL;
    void *found = rest->next;
    size_t padded = recipe_padded(count * each);
    rest->next += padded;
    rest->bytes -= padded;
    return found;
}

static bool take_number(struct rest *rest, uint64_t most, uint32_t *number)
{
    const uint64_t *found = take(rest, 1, sizeof(*found));
    if (!found || *found > most)
        return false;
    *number = (uint32_t)*found;
    return true;
}

/* Null: there is none. */
static const char *take_text(struct rest *rest)
{
    uint32_t bytes;
    if (!take_number(rest, UINT32_MAX, &bytes) || bytes == 0)
        return NULL;
    const char *text = take(rest, bytes, 1);
    return text && text[bytes - 1] == '\0' ? text : NULL;
}

static void free_workload(struct simulator_workload *workload)
{
    free((void *)workload->programs);
    free((void *)workload->texts);
}

static bool take_program(struct rest *rest, struct simulator_program *program)
{
    program->name = take_text(rest);
    if (!program->name || !take_number(rest, UINT32_MAX, &program->count))
        return false;
    program->steps = take(rest, program->count, sizeof(*program->steps));
    return program->steps != NULL;
}

/* Names, steps, texts and channels stay where they are. False: nothing is to be freed. */
static bool take_workload(struct rest *rest, struct simulator_workload *workload)
{
    *workload = (struct simulator_workload){0};
    uint64_t most = rest->bytes / sizeof(uint64_t); /* each takes more than that */
    most = most < UINT32_MAX ? most : UINT32_MAX;
    if (!take_number(rest, most, &workload->program_count) ||
        !take_number(rest, most, &workload->text_count) ||
        !take_number(rest, most, &workload->channel_count))
        return false;
    struct simulator_program *programs = calloc(workload->program_count + 1ull, sizeof(*programs));
    const char **texts = calloc(workload->text_count + 1ull, sizeof(*texts));
    workload->programs = programs;
    workload->texts = texts;
    bool good = programs && texts;
    for (uint32_t i = 0; good && i < workload->program_count; i++)
        good = take_program(rest, &programs[i]);
    for (uint32_t i = 0; good && i < workload->text_count; i++)
        good = (texts[i] = take_text(rest)) != NULL;
    workload->channels =
        good ? take(rest, workload->channel_count, sizeof(*workload->channels)) : NULL;
    if (!workload->channels)
        free_workload(workload);
    return workload->channels != NULL;
}

static bool take_costs(struct rest *rest, struct simulator_costs *costs)
{
    size_t head = offsetof(struct simulator_costs, policies);
    struct rest ahead = *rest;
    const void *found = take(&ahead, 1, head);
    *costs = (struct simulator_costs){0};
    if (!found)
        return false;
    memcpy(costs, found, head);
    if (costs->policy_count > SIMULATOR_POLICY_COSTS_MAX)
        return false;
    size_t bytes = recipe_costs_bytes(costs);
    found = take(rest, bytes, 1);
    if (found)
        memcpy(costs, found, bytes);
    return found != NULL;
}

static bool take_setup(struct rest *rest, struct simulator_setup *setup)
{
    const struct recipe_setup *numbers = take(rest, 1, sizeof(*numbers));
    if (!numbers || numbers->trace_queues > 1)
        return false;
    *setup = (struct simulator_setup){
        .cpus = numbers->cpus,
        .processes = numbers->processes,
        .tick_ns = numbers->tick_ns,
        .seed = numbers->seed,
        .added_steps = numbers->added_steps,
        .trace_queues = numbers->trace_queues,
    };
    setup->policy = take_text(rest);
    setup->tunables = setup->policy ? take_text(rest) : NULL;
    return setup->tunables && take_costs(rest, &setup->costs);
}

/* ---- doing it again ---- */

/* Has more happened than the file says? Then the machine that it describes has not written it. So
 * nothing takes longer than the file says. */
static bool is_too_much(const struct simulator *simulator, const struct simulator_counts *said)
{
    struct simulator_counts now;
    simulator_count(simulator, &now);
    return now.now > said->now || now.decisions > said->decisions || now.ticks > said->ticks ||
           now.forks > said->forks || now.wakeups > said->wakeups ||
           now.idle_switches > said->idle_switches;
}

/* Is the machine what the file says? (Where nothing was traced any more, records were counted
 * before that.) */
static bool is_as_said(const struct simulator *simulator, const struct simulator_counts *said)
{
    struct simulator_counts now;
    simulator_count(simulator, &now);
    now.records = said->records;
    now.process_bytes = said->process_bytes;
    return memcmp(&now, said, offsetof(struct simulator_counts, processes)) == 0 &&
           now.processes == said->processes;
}

static bool run_again(struct simulator *simulator, uint64_t until,
                      const struct simulator_counts *said)
{
    struct simulator_error unused;
    uint64_t piece = PIECE_TICKS * simulator->scheduler.tick_ns;
    enum simulator_status status = SIMULATOR_TIME;
    for (bool ends = false; !ends && status == SIMULATOR_TIME;) {
        uint64_t next = simulator_next(simulator);
        ends = next >= until || until - next <= piece;
        status = simulator_run(simulator, ends ? until : next + piece, &unused);
        if (status == SIMULATOR_FAILED || is_too_much(simulator, said))
            return false;
    }
    return true;
}

static bool act_with_text(struct simulator *simulator, const struct recipe_entry *entry,
                          struct rest *rest)
{
    struct simulator_error unused;
    const char *text = take_text(rest);
    if (!text)
        return false;
    return entry->act == ACT_POLICY ? simulator_set_policy(simulator, text, &unused)
                                    : simulator_set_tunable(simulator, text, &unused);
}

static bool add_again(struct simulator *simulator, struct rest *rest)
{
    struct simulator_error unused;
    struct simulator_workload workload;
    if (!take_workload(rest, &workload))
        return false;
    uint32_t first = simulator_add_workload(simulator, &workload, &unused);
    free_workload(&workload);
    return first != SIMULATOR_NO_PROGRAM;
}

static bool act_again(struct simulator *simulator, const struct recipe_entry *entry,
                      struct rest *rest, const struct simulator_counts *said)
{
    struct simulator_error unused;
    int32_t pid = (int32_t)entry->first;
    switch ((enum recipe_act)entry->act) {
    case ACT_RUN:
        return run_again(simulator, entry->second, said);
    case ACT_TOUCH:
        return begin_act(simulator, &unused);
    case ACT_FORK:
        return simulator_fork(simulator, entry->first, &unused) != 0;
    case ACT_KILL:
        return simulator_kill(simulator, pid, &unused);
    case ACT_WAKE:
        return simulator_wake(simulator, pid, &unused);
    case ACT_MIGRATE:
        return entry->second <= UINT32_MAX &&
               simulator_migrate(simulator, pid, (uint32_t)entry->second, &unused);
    case ACT_GIVE:
        return simulator_give(simulator, entry->first, entry->second, &unused);
    case ACT_ATTRIBUTE:
        return entry->third <= UINT32_MAX &&
               simulator_set_attribute(simulator, pid, (uint32_t)entry->third, entry->second,
                                       &unused);
    case ACT_POLICY:
    case ACT_TUNABLE:
        return act_with_text(simulator, entry, rest);
    case ACT_ADD:
        return add_again(simulator, rest);
    }
    return false;
}

/* Does all that was done to the machine, and runs it to its time. */
static bool do_again(struct simulator *simulator, const struct header *header, struct rest *rest)
{
    while (rest->bytes > 0) {
        const struct recipe_entry *entry = take(rest, 1, sizeof(*entry));
        if (!entry || !act_again(simulator, entry, rest, &header->counts))
            return false;
    }
    return !header->ran || run_again(simulator, header->until, &header->counts);
}

/* Returns null if no machine has written this recipe. */
static struct simulator *make_again(const struct header *header, struct rest *rest)
{
    struct simulator_error unused;
    struct simulator_setup setup;
    struct simulator_workload workload;
    if (!take_setup(rest, &setup) || !take_workload(rest, &workload))
        return NULL;
    setup.trace = header->traced ? NO_TRACE : NULL;
    struct simulator *simulator = simulator_create(&setup, &workload, &unused);
    free_workload(&workload);
    if (simulator && do_again(simulator, header, rest) && is_as_said(simulator, &header->counts))
        return simulator;
    simulator_destroy(simulator);
    return NULL;
}

/* Traces from here on into this file. */
static bool go_on_tracing(struct simulator *simulator, const struct header *header,
                          const char *path, const char *trace, struct simulator_error *error)
{
    close_trace(simulator);
    if (!trace)
        return true;
    if (header->traced)
        return open_trace(simulator, trace, error);
    set_error(error, "the checkpoint %s: its run had no trace, and cannot have one from here on",
              path);
    return false;
}

struct simulator *simulator_restore(const char *path, const char *trace,
                                    struct simulator_error *error)
{
    struct header header;
    unsigned char *recipe = NULL;
    struct simulator *simulator = NULL;
    FILE *file = fopen(path, "rb");
    if (!file) {
        set_error(error, "the checkpoint %s cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    const char *flaw = read_file(file, &header, &recipe);
    fclose(file);
    if (!flaw) {
        struct rest rest = {recipe, header.recipe_bytes};
        simulator = make_again(&header, &rest);
        flaw = simulator ? NULL : "it was made up, or changed: no run comes to what it says";
    }
    free(recipe);
    if (flaw)
        set_error(error, "the checkpoint %s: %s", path, flaw);
    if (simulator && !go_on_tracing(simulator, &header, path, trace, error)) {
        simulator_destroy(simulator);
        return NULL;
    }
    return simulator;
}
