/* SPDX-License-Identifier: MIT */

/*
 * Machines in files. All that a machine is lies in its arena, pointers into it
 * included, those of policies too, which nobody else could find: so its pages are
 * written as they are, and read to the same addresses again. What points out of it, to
 * the program and to the trace's buffer, is put right.
 *
 * A file is a header, pages that are not all zero, each behind its number, and the
 * number LAST_PAGE with a checksum of all before it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/control.h"
#include "sim/machine.h"

#define MAGIC          0x50434d4953424c53ull /* "SLBSIMCP" */
#define FORMAT_VERSION 1
#define PAGE_WORDS     (ARENA_PAGE / sizeof(uint64_t))
#define LAST_PAGE      UINT64_MAX
#define BUILD_BYTES    64

/* A hash of the objects that the simulator is made of: made by sim.mk. */
extern const char build_name[];

struct header {
    uint64_t magic;
    uint32_t version;
    uint32_t bytes;
    char build[BUILD_BYTES];
    uint64_t address; /* of the arena */
    uint64_t mapped;
    uint64_t taken;
    uint32_t policy; /* its number */
    uint32_t traced;
    uint64_t checksum; /* of what is before it */
};

struct page {
    uint64_t number;
    uint64_t words[PAGE_WORDS];
};

#define CHECKSUM_BEGIN 0xcbf29ce484222325ull

/* No two texts that differ in one word have the same; others by chance. After FNV-1a (Fowler, Noll,
 * Vo 1991), with words and rotations. */
static uint64_t checksum(uint64_t sum, const void *data, size_t bytes)
{
    const uint64_t *words = data;
    for (size_t i = 0; i < bytes / sizeof(*words); i++) {
        sum ^= words[i];
        sum = (sum << 29 | sum >> 35) * 0x100000001b3ull;
    }
    return sum;
}

/* ---- writing ---- */

/* Byte by byte as it lies there, between arrays too, where AddressSanitizer lets nobody look.
 * False: it is all zero. */
__attribute__((no_sanitize("address"))) static bool copy_page(struct page *page,
                                                              const unsigned char *from)
{
    const volatile uint64_t *words = (const volatile uint64_t *)(const void *)from;
    uint64_t any = 0;
    for (size_t i = 0; i < PAGE_WORDS; i++)
        any |= page->words[i] = words[i];
    return any != 0;
}

static struct header header_of(const struct simulator *simulator)
{
    struct header header = {
        .magic = MAGIC,
        .version = FORMAT_VERSION,
        .bytes = sizeof(header),
        .address = (uintptr_t)simulator->arena.base,
        .mapped = simulator->arena.bytes,
        .taken = simulator->arena.taken,
        .policy = policy_number(simulator->engine->policy),
        .traced = simulator->trace.next != NULL,
    };
    memcpy(header.build, build_name, BUILD_BYTES);
    header.checksum = checksum(CHECKSUM_BEGIN, &header, offsetof(struct header, checksum));
    return header;
}

/* False: see errno. */
static bool write_machine(const struct simulator *simulator, FILE *file)
{
    struct header header = header_of(simulator);
    struct page page;
    uint64_t sum = checksum(CHECKSUM_BEGIN, &header, sizeof(header));
    bool good = fwrite(&header, sizeof(header), 1, file) == 1;
    for (size_t place = 0; place < simulator->arena.taken && good; place += ARENA_PAGE) {
        page.number = place / ARENA_PAGE;
        if (!copy_page(&page, simulator->arena.base + place))
            continue;
        sum = checksum(sum, &page, sizeof(page));
        good = fwrite(&page, sizeof(page), 1, file) == 1;
    }
    const uint64_t end[] = {LAST_PAGE, sum};
    return good && fwrite(end, sizeof(end), 1, file) == 1 && fflush(file) == 0;
}

/* A file beside it that nobody else has; `name` is given back by free(). Null: see errno. */
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

/* The whole file, or none. (What a failure of the power leaves half-written is told by its
 * checksum.) */
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
    return write_file(simulator, path, error);
}

/* ---- reading ---- */

/* Null: it is sound, and of this build; else what is wrong. */
static const char *header_flaw(const struct header *header)
{
    if (header->magic != MAGIC)
        return "it is no checkpoint";
    if (header->version != FORMAT_VERSION || header->bytes != sizeof(*header))
        return "its format is of another version of the simulator, and only that can continue it";
    if (header->checksum != checksum(CHECKSUM_BEGIN, header, offsetof(struct header, checksum)))
        return "it is damaged";
    if (memcmp(header->build, build_name, BUILD_BYTES) != 0)
        return "another build of the simulator saved it, and only that can continue it";
    return NULL;
}

/* Into the arena. Null, or what is wrong. */
static const char *read_pages(FILE *file, const struct header *header, const struct arena *arena)
{
    static const char *const cut_short = "it is cut short";
    struct page page;
    uint64_t next = 0;
    uint64_t sum = checksum(CHECKSUM_BEGIN, header, sizeof(*header));
    for (;;) {
        if (fread(&page.number, sizeof(page.number), 1, file) != 1)
            return cut_short;
        if (page.number == LAST_PAGE)
            break;
        if (page.number < next || page.number >= arena->bytes / ARENA_PAGE)
            return "it is damaged";
        if (fread(page.words, sizeof(page.words), 1, file) != 1)
            return cut_short;
        sum = checksum(sum, &page, sizeof(page));
        memcpy(arena->base + page.number * ARENA_PAGE, page.words, sizeof(page.words));
        next = page.number + 1;
    }
    uint64_t written;
    if (fread(&written, sizeof(written), 1, file) != 1)
        return cut_short;
    return written == sum && fgetc(file) == EOF ? NULL : "it is damaged";
}

/* Null: see `*flaw`. */
static struct simulator *read_machine(FILE *file, struct header *header, const char **flaw)
{
    struct arena arena;
    bool whole = fread(header, sizeof(*header), 1, file) == 1;
    *flaw = whole ? header_flaw(header) : "it is no checkpoint, or cut short";
    if (*flaw)
        return NULL;
    if (!arena_map_at(&arena, (uintptr_t)header->address, header->mapped)) {
        *flaw = "there is no memory at the addresses that its machine had. If that lives in this "
                "program still, destroy it first";
        return NULL;
    }
    *flaw = read_pages(file, header, &arena);
    if (*flaw) {
        arena_unmap(&arena);
        return NULL;
    }
    return (struct simulator *)(void *)arena.base;
}

/* What points out of the arena. */
static void put_right(struct simulator *simulator, const struct header *header)
{
    simulator->engine = engines[header->policy];
    simulator->trace = (struct trace){.file = -1, .records = simulator->trace.records};
    guard_states(simulator);
}

struct simulator *simulator_restore(const char *path, const char *trace,
                                    struct simulator_error *error)
{
    struct header header;
    const char *flaw = NULL;
    FILE *file = fopen(path, "rb");
    if (!file) {
        set_error(error, "the checkpoint %s cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    struct simulator *simulator = read_machine(file, &header, &flaw);
    fclose(file);
    if (!simulator) {
        set_error(error, "the checkpoint %s: %s", path, flaw);
        return NULL;
    }
    put_right(simulator, &header);
    if (trace && !header.traced)
        set_error(error,
                  "the checkpoint %s: its run had no trace, and cannot have one from here on",
                  path);
    if (trace && (!header.traced || !open_trace(simulator, trace, error))) {
        simulator_destroy(simulator);
        return NULL;
    }
    return simulator;
}
