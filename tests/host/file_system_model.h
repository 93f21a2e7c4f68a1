/* SPDX-License-Identifier: MIT */
#ifndef TESTS_HOST_FILE_SYSTEM_MODEL_H
#define TESTS_HOST_FILE_SYSTEM_MODEL_H

/*
 * Workers that make random calls on files and know the results. Each keeps a simple model of its
 * files in memory, and records what a reader of the disk may find during and after each of its
 * calls. A worker owns the names that begin with its letter, in / and in /shared.
 */
#include "file_system_machine.h"

enum {
    WORKERS_MAX = 6,
    MODEL_FILES = 64,
    WORKER_OPEN = 4,
    WORKER_FILE_BLOCKS = 40, /* more than the inode's direct pointers */
};

struct model_file {
    uint16_t type;
    uint32_t links;
    uint32_t users; /* open descriptors of the worker */
    uint32_t size;
    uint8_t *bytes;
};

struct model_name {
    char path[40];
    int file; /* index; -1: the slot is free */
};

struct model {
    struct model_file files[MODEL_FILES];
    struct model_name names[MODEL_FILES];
};

/* A possible content of the disk after this number of the worker's calls. */
struct candidate {
    uint32_t call;
    char *dump;
};

/* Disk events at the begin and return of a call. */
struct call_times {
    uint64_t began;
    uint64_t returned;
};

struct worker {
    char letter;
    uint32_t calls;  /* number of calls */
    bool may_fill;   /* calls may fail because the disk is full */
    bool keep_notes; /* record candidates and times */
    struct model model;
    struct {
        int64_t descriptor; /* -1: not open */
        int file;
        uint32_t offset;
    } open[WORKER_OPEN];
    struct candidate *candidates;
    size_t candidate_count;
    struct call_times *times; /* index 1 is call 1 */
    uint32_t call;            /* the current call */
    char *match;              /* content of the disk, for the comparison */
    size_t disk_bytes;
};

/* ---- the model ---- */

static int model_find(const struct model *model, const char *path)
{
    for (int i = 0; i < MODEL_FILES; i++) {
        if (model->names[i].file >= 0 && strcmp(model->names[i].path, path) == 0)
            return i;
    }
    return -1;
}

static void model_init(struct model *model)
{
    memset(model, 0, sizeof(*model));
    for (int i = 0; i < MODEL_FILES; i++)
        model->names[i].file = -1;
}

static void model_free(struct model *model)
{
    for (int i = 0; i < MODEL_FILES; i++)
        free(model->files[i].bytes);
}

static void model_drop(struct model *model, int file)
{
    struct model_file *removed = &model->files[file];
    if (removed->links > 0 || removed->users > 0)
        return;
    free(removed->bytes);
    *removed = (struct model_file){.type = INODE_FREE};
}

/*
 * Adds a name for an existing file, or for a new file if `file` is -1. Returns false if the model
 * is full.
 */
static bool model_add(struct model *model, const char *path, uint16_t type, int file)
{
    int slot = 0;
    while (slot < MODEL_FILES && model->names[slot].file >= 0)
        slot++;
    if (file < 0) {
        for (file = 0; file < MODEL_FILES && model->files[file].type != INODE_FREE; file++)
            ;
        if (file == MODEL_FILES || slot == MODEL_FILES)
            return false;
        model->files[file].type = type;
        model->files[file].bytes = malloc(WORKER_FILE_BLOCKS * BLOCK_BYTES);
    }
    if (slot == MODEL_FILES)
        return false;
    model->files[file].links++;
    model->names[slot].file = file;
    snprintf(model->names[slot].path, sizeof(model->names[slot].path), "%s", path);
    return true;
}

static void model_remove(struct model *model, int name)
{
    int file = model->names[name].file;
    model->names[name].file = -1;
    model->files[file].links--;
    model_drop(model, file);
}

/* Returns 0 if the path's parents permit a lookup, -ENOENT or -ENOTDIR otherwise. */
static int model_check_parents(const struct model *model, const char *path)
{
    char parent[40];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
        if (strcmp(parent, "/shared") == 0)
            continue;
        int name = model_find(model, parent);
        if (name < 0)
            return -ENOENT;
        if (model->files[model->names[name].file].type != FILE_DIRECTORY)
            return -ENOTDIR;
    }
    return 0;
}

/* Returns why the name cannot be created, or 0. */
static int model_check_new(const struct model *model, const char *path)
{
    int error = model_check_parents(model, path);
    return !error && model_find(model, path) >= 0 ? -EEXIST : error;
}

/* Returns why the name cannot be found, or 0. */
static int model_check_old(const struct model *model, const char *path)
{
    int error = model_check_parents(model, path);
    return !error && model_find(model, path) < 0 ? -ENOENT : error;
}

static bool model_has_children(const struct model *model, const char *path)
{
    size_t length = strlen(path);
    for (int i = 0; i < MODEL_FILES; i++) {
        const struct model_name *name = &model->names[i];
        if (name->file >= 0 && strncmp(name->path, path, length) == 0 && name->path[length] == '/')
            return true;
    }
    return false;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *join_lines(char **lines, size_t count)
{
    size_t bytes = 1;
    qsort(lines, count, sizeof(*lines), compare_lines);
    for (size_t i = 0; i < count; i++)
        bytes += strlen(lines[i]);
    char *text = malloc(bytes);
    char *end = text;
    *end = 0;
    for (size_t i = 0; i < count; i++) {
        end = stpcpy(end, lines[i]);
        free(lines[i]);
    }
    return text;
}

static uint64_t hash_bytes(const uint8_t *data, size_t n)
{
    uint64_t hash = 0xcbf29ce484222325ull; /* Fowler, Noll, Vo 1991 */
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ data[i]) * 0x100000001b3ull;
    return hash;
}

/* Describes a file in one line; the model and the disk use the same format. */
static char *describe(const char *path, uint16_t type, uint32_t links, const uint8_t *data,
                      uint32_t size)
{
    char *line = NULL;
    if (type == FILE_DIRECTORY)
        check(asprintf(&line, "%s directory\n", path) > 0);
    else
        check(asprintf(&line, "%s links %u size %u hash %016llx\n", path, links, size,
                       (unsigned long long)hash_bytes(data, size)) > 0);
    return line;
}

static char *model_dump(const struct model *model)
{
    char *lines[MODEL_FILES];
    size_t count = 0;

    for (int i = 0; i < MODEL_FILES; i++) {
        const struct model_name *name = &model->names[i];
        if (name->file < 0)
            continue;
        const struct model_file *file = &model->files[name->file];
        lines[count++] = describe(name->path, file->type, file->links, file->bytes, file->size);
    }
    return join_lines(lines, count);
}

/* ---- one call ---- */

/* Records that the disk may hold this state during and after the call. */
static void note_candidate(struct worker *worker)
{
    if (!worker->keep_notes)
        return;
    size_t count = worker->candidate_count;
    if ((count & (count - 1)) == 0)
        worker->candidates =
            realloc(worker->candidates, (count * 2 + 1) * sizeof(struct candidate));
    worker->candidates[worker->candidate_count++] =
        (struct candidate){.call = worker->call, .dump = model_dump(&worker->model)};
}

static void begin_call(struct worker *worker)
{
    worker->call++;
    if (worker->keep_notes)
        worker->times[worker->call] = (struct call_times){disk.events, UINT64_MAX};
    if (!worker->may_fill)
        check(worker->call <= worker->calls);
}

static void end_call(struct worker *worker)
{
    if (worker->keep_notes)
        worker->times[worker->call].returned = disk.events;
}

static void random_path(const struct worker *worker, char path[40])
{
    static const char *const forms[] = {"/%c%u", "/%cd/%u", "/%ce/%u",   "/shared/%c%u",
                                        "/%cd",  "/%ce",    "/%cd/d/%u", "/%cd/d"};
    uint32_t form = random_below(sizeof(forms) / sizeof(*forms));
    snprintf(path, 40, forms[form], worker->letter, random_below(4));
}

static void try_create(struct worker *worker)
{
    char path[40];
    int slot = (int)random_below(WORKER_OPEN);
    int flags = OPEN_BOTH | OPEN_CREATE | (random_chance(4) ? OPEN_TRUNCATE : 0);
    random_path(worker, path);
    if (worker->open[slot].descriptor >= 0)
        return;

    int expected = model_check_new(&worker->model, path);
    begin_call(worker);
    if (expected == -EEXIST) {
        struct model_file *file =
            &worker->model.files[worker->model.names[model_find(&worker->model, path)].file];
        expected = file->type == FILE_DIRECTORY ? -EISDIR : 0;
        if (expected == 0 && flags & OPEN_TRUNCATE)
            file->size = 0;
    } else if (expected == 0) {
        check(model_add(&worker->model, path, FILE_REGULAR, -1));
    }
    note_candidate(worker);
    int64_t descriptor = do_open(path, flags);
    end_call(worker);
    if (expected < 0) {
        check(descriptor == expected);
        return;
    }
    int name = model_find(&worker->model, path);
    int file = worker->model.names[name].file;
    if (descriptor == -ENOSPC && worker->may_fill) {
        worker->model.names[name].file = -1;
        worker->model.files[file].links--;
        model_drop(&worker->model, file);
        return;
    }
    check(descriptor >= 0);
    worker->model.files[file].users++;
    worker->open[slot].descriptor = descriptor;
    worker->open[slot].file = file;
    worker->open[slot].offset = 0;
}

static void try_close(struct worker *worker, int slot)
{
    if (worker->open[slot].descriptor < 0)
        return;
    begin_call(worker);
    note_candidate(worker);
    check(do_close(worker->open[slot].descriptor) == 0);
    end_call(worker);
    worker->open[slot].descriptor = -1;
    worker->model.files[worker->open[slot].file].users--;
    model_drop(&worker->model, worker->open[slot].file);
}

static void fill_random(uint8_t *data, size_t n)
{
    uint64_t value = random_next();
    for (size_t i = 0; i < n; i++)
        data[i] = (uint8_t)(value >> i % 8 * 8) + (uint8_t)(i / 8);
}

/* A large write is several transactions, so the disk may hold any number of its blocks. */
static void try_write(struct worker *worker)
{
    int slot = (int)random_below(WORKER_OPEN);
    struct model_file *file = &worker->model.files[worker->open[slot].file];
    uint32_t offset = worker->open[slot].offset;
    uint32_t n = random_chance(3) ? random_below(80000) : random_below(6000);
    if (worker->open[slot].descriptor < 0)
        return;
    if (offset + n > WORKER_FILE_BLOCKS * BLOCK_BYTES)
        n = WORKER_FILE_BLOCKS * BLOCK_BYTES - offset;

    uint8_t *data = malloc(n + 1);
    fill_random(data, n);
    begin_call(worker);
    if (offset > file->size) {
        note_candidate(worker);
        check(do_write(worker->open[slot].descriptor, data, (int)n) == (n > 0 ? -EINVAL : 0));
        end_call(worker);
        free(data);
        return;
    }
    uint32_t before = file->size;
    for (uint32_t done = 0; done < n;) {
        uint32_t piece = BLOCK_BYTES - (offset + done) % BLOCK_BYTES;
        piece = piece < n - done ? piece : n - done;
        memcpy(file->bytes + offset + done, data + done, piece);
        done += piece;
        if (offset + done > file->size)
            file->size = offset + done;
        note_candidate(worker);
    }
    note_candidate(worker);
    int64_t result = do_write(worker->open[slot].descriptor, data, (int)n);
    end_call(worker);
    free(data);
    if (result == -ENOSPC && worker->may_fill) {
        struct file_status status;
        check(system_fstat((int)worker->open[slot].descriptor, user(&status)) == 0);
        check(status.size >= before && status.size < file->size);
        file->size = (uint32_t)status.size;
        try_close(worker, slot); /* its offset is not known */
        return;
    }
    check(result == n);
    worker->open[slot].offset += n;
}

static void try_read(struct worker *worker)
{
    int slot = (int)random_below(WORKER_OPEN);
    const struct model_file *file = &worker->model.files[worker->open[slot].file];
    uint32_t offset = worker->open[slot].offset;
    uint32_t n = random_below(70000);
    if (worker->open[slot].descriptor < 0)
        return;
    uint32_t expected = offset >= file->size      ? 0
                        : file->size - offset < n ? file->size - offset
                                                  : n;
    uint8_t *data = malloc(n + 1);
    check(do_read(worker->open[slot].descriptor, data, (int)n) == expected);
    check(memcmp(data, file->bytes + offset, expected) == 0);
    free(data);
    worker->open[slot].offset += expected;
}

static void try_unlink(struct worker *worker)
{
    char path[40];
    random_path(worker, path);
    int name = model_find(&worker->model, path);
    int expected = model_check_old(&worker->model, path);

    if (expected == 0 && model_has_children(&worker->model, path))
        expected = -ENOTEMPTY;
    begin_call(worker);
    if (expected == 0)
        model_remove(&worker->model, name);
    note_candidate(worker);
    check(do_unlink(path) == expected);
    end_call(worker);
}

static void try_link(struct worker *worker)
{
    char old_path[40];
    char new_path[40];
    random_path(worker, old_path);
    random_path(worker, new_path);
    int name = model_find(&worker->model, old_path);
    int error = model_check_new(&worker->model, new_path);
    int expected = model_check_old(&worker->model, old_path);

    if (expected == 0 && worker->model.files[worker->model.names[name].file].type == FILE_DIRECTORY)
        expected = -EISDIR;
    else if (expected == 0)
        expected = error;
    begin_call(worker);
    if (expected == 0)
        check(model_add(&worker->model, new_path, 0, worker->model.names[name].file));
    note_candidate(worker);
    int64_t result = do_link(old_path, new_path);
    end_call(worker);
    if (result == -ENOSPC && worker->may_fill) {
        if (expected == 0)
            model_remove(&worker->model, model_find(&worker->model, new_path));
        return;
    }
    /* If two errors apply, either may be returned. */
    check(result == expected || (expected == -EISDIR && result == error));
}

static void try_mkdir(struct worker *worker)
{
    char path[40];
    random_path(worker, path);
    int expected = model_check_new(&worker->model, path);
    begin_call(worker);
    if (expected == 0)
        check(model_add(&worker->model, path, FILE_DIRECTORY, -1));
    note_candidate(worker);
    int64_t result = do_mkdir(path);
    end_call(worker);
    if (result == -ENOSPC && worker->may_fill) {
        if (expected == 0)
            model_remove(&worker->model, model_find(&worker->model, path));
        return;
    }
    check(result == expected);
}

static void try_random(struct worker *worker)
{
    switch (random_below(9)) {
    case 0:
    case 1:
        try_create(worker);
        break;
    case 2:
    case 3:
        try_write(worker);
        break;
    case 4:
        try_read(worker);
        break;
    case 5:
        try_close(worker, (int)random_below(WORKER_OPEN));
        break;
    case 6:
        try_unlink(worker);
        break;
    case 7:
        try_link(worker);
        break;
    default:
        try_mkdir(worker);
        break;
    }
}

/* ---- a worker's calls ---- */

static void worker_init(struct worker *worker, int number, uint32_t calls, bool keep_notes)
{
    *worker =
        (struct worker){.letter = (char)('a' + number), .calls = calls, .keep_notes = keep_notes};
    model_init(&worker->model);
    for (int i = 0; i < WORKER_OPEN; i++)
        worker->open[i].descriptor = -1;
    worker->times = calloc(calls + WORKER_OPEN + 1, sizeof(*worker->times));
    note_candidate(worker);
}

static void worker_body(void *argument)
{
    struct worker *worker = argument;
    check(do_chdir("/shared/..") == 0);
    while (worker->call + WORKER_OPEN < worker->calls)
        try_random(worker);
    for (int i = 0; i < WORKER_OPEN; i++)
        try_close(worker, i);
}

static void worker_end(struct worker *worker)
{
    for (size_t i = 0; i < worker->candidate_count; i++)
        free(worker->candidates[i].dump);
    free(worker->candidates);
    free(worker->times);
    model_free(&worker->model);
}

/* ---- content of the disk ---- */

static char *disk_lines[WORKERS_MAX][MODEL_FILES];
static size_t disk_count[WORKERS_MAX];

static void find_file(const char *path, char letter)
{
    static uint8_t data[WORKER_FILE_BLOCKS * BLOCK_BYTES + 1];
    struct file_status status;
    int worker = letter - 'a';
    int64_t descriptor = do_open(path, OPEN_READ);

    check(descriptor >= 0 && worker >= 0 && worker < WORKERS_MAX);
    check(system_fstat((int)descriptor, user(&status)) == 0);
    int64_t size = status.type == FILE_REGULAR ? do_read(descriptor, data, sizeof(data)) : 0;
    check(status.type == FILE_DIRECTORY || (uint64_t)size == status.size);
    check(do_close(descriptor) == 0);
    check(disk_count[worker] < MODEL_FILES);
    disk_lines[worker][disk_count[worker]++] =
        describe(path, (uint16_t)status.type, (uint32_t)status.links, data, (uint32_t)size);
}

static void find_in(const char *directory, char letter)
{
    struct directory_entry entry;
    char path[64];
    int64_t descriptor = do_open(directory, OPEN_READ);

    check(descriptor >= 0);
    while (do_read(descriptor, &entry, sizeof(entry)) == sizeof(entry)) {
        if (entry.inode == 0 || entry.name[0] == '.')
            continue;
        struct file_status status;
        snprintf(path, sizeof(path), "%s/%.14s", strcmp(directory, "/") == 0 ? "" : directory,
                 entry.name);
        int64_t file = do_open(path, OPEN_READ);
        check(file >= 0 && system_fstat((int)file, user(&status)) == 0);
        check(do_close(file) == 0);
        bool shared = strcmp(path, "/shared") == 0;
        if (!shared)
            find_file(path, letter ? letter : entry.name[0]);
        if (status.type == FILE_DIRECTORY)
            find_in(path, shared || letter ? letter : entry.name[0]);
    }
    check(do_close(descriptor) == 0);
}

static void find_body(void *unused)
{
    (void)unused;
    find_in("/", 0);
}

/* Returns the files of each worker on the mounted disk; the caller frees the text. */
static void find_all(char *match[WORKERS_MAX])
{
    memset(disk_count, 0, sizeof(disk_count));
    run_session(find_body, NULL);
    for (int i = 0; i < WORKERS_MAX; i++)
        match[i] = join_lines(disk_lines[i], disk_count[i]);
}

static void make_shared(void *unused)
{
    (void)unused;
    check(do_mkdir("/shared") == 0);
    check(system_sync() == 0);
}

/* ---- the same few names for all ---- */

static void quarrel(void *argument)
{
    static const char *const paths[] = {"/shared", "/x", "/x/y", "/y", "/x/y/z"};
    static uint8_t data[20000];
    int64_t descriptor;
    int calls = *(int *)argument;
    for (int i = 0; i < calls; i++) {
        const char *path = paths[random_below(5)];
        const char *other = paths[random_below(5)];
        switch (random_below(6)) {
        case 0:
            do_mkdir(path);
            break;
        case 1:
            do_link(path, other);
            break;
        case 2:
            do_chdir(path);
            break;
        case 3:
            do_close(do_open(path, OPEN_CREATE | OPEN_WRITE | OPEN_TRUNCATE));
            break;
        case 4:
            descriptor = do_open(path, OPEN_CREATE | OPEN_WRITE);
            do_write(descriptor, data, (int)random_below(sizeof(data)));
            do_close(descriptor);
            break;
        default:
            do_unlink(path);
            break;
        }
    }
}

#endif
