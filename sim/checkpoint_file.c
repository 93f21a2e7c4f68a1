/* SPDX-License-Identifier: MIT */

#include "sim/checkpoint_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/recipe.h"
#include "sim/tracing.h"

#define MAGIC          0x50434d4953424c53ull /* "SLBSIMCP" */
#define FORMAT_VERSION 3
#define FIRST_ROOM     65536

/* A hash of the objects that make up the simulator; created by sim.mk. */
extern const char build_name[];

#define CHECKSUM_BEGIN 0xcbf29ce484222325ull

/* Returns a checksum. Data that differ in a single word always have different checksums; other
 * different data almost always have. After FNV-1a (Fowler, Noll, Vo 1991), with words and
 * rotations. */
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

static struct checkpoint_header header_of(const struct simulator *simulator)
{
    const struct recipe *recipe = &simulator->recipe;
    struct checkpoint_header header = {
        .magic = MAGIC,
        .version = FORMAT_VERSION,
        .bytes = sizeof(header),
        .recipe_bytes = recipe->used,
        .recipe_checksum = checksum(recipe->bytes, recipe->used),
        .until = recipe->ran_until,
        .ran = recipe->ran,
        .traced = simulator->trace.next != NULL,
    };
    memcpy(header.build, build_name, CHECKPOINT_BUILD_BYTES);
    simulator_count(simulator, &header.counts);
    header.checksum = checksum(&header, offsetof(struct checkpoint_header, checksum));
    return header;
}

/* Returns false on failure; errno gives the reason. */
static bool write_machine(const struct simulator *simulator, FILE *file)
{
    const struct checkpoint_header header = header_of(simulator);
    return fwrite(&header, sizeof(header), 1, file) == 1 &&
           fwrite(simulator->recipe.bytes, simulator->recipe.used, 1, file) == 1 &&
           fflush(file) == 0;
}

/* Creates a file with a new name in the directory of `path`. Returns null on failure; errno then
 * gives the reason. The caller frees `name`. */
static FILE *create_temporary(const char *path, char **name)
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

bool checkpoint_write(const struct simulator *simulator, const char *path,
                      struct simulator_error *error)
{
    char *name = NULL;
    FILE *file = create_temporary(path, &name);
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

static const char damaged[] = "it is damaged";
static const char cut_short[] = "it is truncated";

/* Returns the error in a header, or null if the checkpoint is valid and was written by this
 * build. */
static const char *header_flaw(const struct checkpoint_header *header)
{
    if (header->magic != MAGIC)
        return "it is not a checkpoint";
    if (header->version != FORMAT_VERSION || header->bytes != sizeof(*header))
        return "another version of the simulator saved it; continue it with that version";
    if (header->checksum != checksum(header, offsetof(struct checkpoint_header, checksum)))
        return damaged;
    if (memcmp(header->build, build_name, CHECKPOINT_BUILD_BYTES) != 0)
        return "another build of the simulator saved it; continue it with that build";
    return NULL;
}

/* Returns the recipe, or null if memory is short. If the file is shorter than it declares, returns
 * only the existing part. */
static unsigned char *read_recipe(FILE *file, uint64_t requested, uint64_t *match)
{
    size_t room = FIRST_ROOM;
    unsigned char *bytes = malloc(room);
    *match = 0;
    while (bytes && *match < requested) {
        if (*match == room) {
            unsigned char *moved = realloc(bytes, room *= 2);
            if (!moved)
                free(bytes);
            bytes = moved;
            continue;
        }
        size_t most = requested - *match < room - *match ? requested - *match : room - *match;
        size_t got = fread(bytes + *match, 1, most, file);
        *match += got;
        if (got == 0)
            break;
    }
    return bytes;
}

const char *checkpoint_read(FILE *file, struct checkpoint_header *header, unsigned char **recipe)
{
    bool is_complete = fread(header, sizeof(*header), 1, file) == 1;
    const char *flaw = is_complete ? header_flaw(header) : "it is not a checkpoint, or truncated";
    if (flaw)
        return flaw;
    uint64_t match;
    *recipe = read_recipe(file, header->recipe_bytes, &match);
    if (!*recipe)
        return "out of memory";
    if (match < header->recipe_bytes)
        return cut_short;
    if (match % 8 != 0 || header->recipe_checksum != checksum(*recipe, match) || fgetc(file) != EOF)
        return damaged;
    return NULL;
}
