/* SPDX-License-Identifier: MIT */

/*
 * Reads images (image.h), and lays out the memory of a scheduler. Each number of an image is
 * checked before it is used, because anyone may have written the file.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/machine.h"
#include "sim/sched_ext/engine.h"
#include "sim/sched_ext/state.h"

#define FILE_BYTES_MAX   (256u << 20)
#define REGION_BYTES_MAX (1ull << 32)
#define MEMORY_MAX       (64ull << 30) /* of addresses; unused pages need no memory */
#define TASKS_MAX        (1u << 20)
#define PAGE_BYTES       4096u
#define WATCHDOG_MAX_MS  SCX_WATCHDOG_MAX_TIMEOUT

static const uint32_t record_bytes[IMAGE_TABLES] = {
    [IMAGE_REGIONS] = sizeof(struct image_region),
    [IMAGE_INSTRUCTIONS] = sizeof(struct image_instruction),
    [IMAGE_MAP_LIST] = sizeof(struct image_map),
    [IMAGE_INNER_MAPS] = sizeof(struct image_inner_map),
    [IMAGE_FIELDS] = sizeof(struct image_field),
    [IMAGE_OPS] = sizeof(struct image_op),
    [IMAGE_PROGRAMS] = sizeof(struct image_program),
    [IMAGE_VARIABLES] = sizeof(struct image_variable),
    [IMAGE_TYPES] = sizeof(struct image_type),
    [IMAGE_LINES] = sizeof(struct image_line),
    [IMAGE_STEPS] = sizeof(struct image_step),
    [IMAGE_STRINGS] = 1,
    [IMAGE_DATA] = 1,
};

/* ---- access ---- */

const void *image_table(const struct sched_ext *ext, enum image_table_number table, uint32_t *count)
{
    const struct image_table *entry = &ext->image->tables[table];
    *count = entry->count;
    return (const unsigned char *)ext->image + entry->offset;
}

static bool is_string(const struct sched_ext *ext, image_text text)
{
    return text < ext->image->tables[IMAGE_STRINGS].count;
}

const char *image_string(const struct sched_ext *ext, image_text text)
{
    uint32_t bytes;
    const char *strings = image_table(ext, IMAGE_STRINGS, &bytes);
    return text < bytes ? strings + text : "?";
}

const struct image_program *image_program_at(const struct sched_ext *ext, uint32_t instruction)
{
    uint32_t count;
    const struct image_program *programs = image_table(ext, IMAGE_PROGRAMS, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (instruction >= programs[i].first && instruction - programs[i].first < programs[i].count)
            return &programs[i];
    }
    return NULL;
}

const struct image_type *image_type_of(const struct sched_ext *ext, uint64_t id)
{
    uint32_t count;
    const struct image_type *types = image_table(ext, IMAGE_TYPES, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (types[i].id == id)
            return &types[i];
    }
    return NULL;
}

/* ---- reading the file ---- */

static void *read_stream(FILE *file, const char *path, size_t *bytes, struct simulator_error *error)
{
    long size = -1;
    if (fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size < (long)sizeof(struct image_header) || size > (long)FILE_BYTES_MAX) {
        set_error(error, "%.200s: not an image of a sched_ext scheduler", path);
        return NULL;
    }
    void *content = malloc((size_t)size);
    rewind(file);
    if (!content || fread(content, 1, (size_t)size, file) != (size_t)size) {
        set_error(error, "%.200s: cannot be read", path);
        free(content);
        return NULL;
    }
    *bytes = (size_t)size;
    return content;
}

static void *read_file(const char *path, size_t *bytes, struct simulator_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        set_error(error, "%.200s: %s", path, strerror(errno));
        return NULL;
    }
    void *content = read_stream(file, path, bytes, error);
    fclose(file);
    return content;
}

/* ---- checks; each returns the flaw, or null ---- */

static const char *header_flaw(const struct image_header *image, size_t bytes)
{
    if (image->magic != IMAGE_MAGIC)
        return "not an image of a sched_ext scheduler";
    if (image->version != IMAGE_VERSION)
        return "another version of the format; make the image again";
    if (image->size != bytes)
        return "incomplete";
    for (uint32_t i = 0; i < IMAGE_TABLES; i++) {
        const struct image_table *table = &image->tables[i];
        uint64_t end = table->offset + (uint64_t)table->count * record_bytes[i];
        if (table->offset % 8 || table->offset < sizeof(*image) || end > bytes)
            return "a table is outside of the file";
    }
    const struct image_table *strings = &image->tables[IMAGE_STRINGS];
    const char *text = (const char *)image + strings->offset;
    if (strings->count == 0 || text[0] || text[strings->count - 1])
        return "its texts do not end";
    return NULL;
}

static bool in_range(uint64_t first, uint64_t count, uint64_t total)
{
    return count <= total && first <= total - count;
}

static const char *region_flaw(const struct sched_ext *ext)
{
    uint32_t count;
    const struct image_region *regions = image_table(ext, IMAGE_REGIONS, &count);
    uint32_t data = ext->image->tables[IMAGE_DATA].count;
    bool seen[REGIONS] = {0};
    for (uint32_t i = 0; i < count; i++) {
        const struct image_region *region = &regions[i];
        bool placed = region->number == REGION_ARENA ||
                      (region->number >= REGION_IMAGE && region->number < REGION_VALUES);
        if (!placed || seen[region->number])
            return "a region has a wrong number";
        if (region->size > REGION_BYTES_MAX || !is_string(ext, region->name) ||
            !in_range(region->data, region->data_size, data) ||
            !in_range(region->data_offset, region->data_size, region->size) ||
            !in_range(region->first_field, region->fields, ext->image->tables[IMAGE_FIELDS].count))
            return "a region has wrong sizes";
        seen[region->number] = true;
    }
    return NULL;
}

static const char *program_flaw(const struct sched_ext *ext)
{
    uint32_t count;
    uint32_t code = ext->image->tables[IMAGE_INSTRUCTIONS].count;
    const struct image_program *programs = image_table(ext, IMAGE_PROGRAMS, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (!in_range(programs[i].first, programs[i].count, code) ||
            !is_string(ext, programs[i].name) || !is_string(ext, programs[i].section))
            return "a program is outside of the code";
    }
    const struct image_op *ops = image_table(ext, IMAGE_OPS, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (ops[i].op >= OP_COUNT || ops[i].instruction >= code)
            return "an operation is outside of the code";
    }
    const struct image_line *lines = image_table(ext, IMAGE_LINES, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_string(ext, lines[i].file))
            return "a source line has no file";
    }
    return NULL;
}

static const char *map_flaw(const struct sched_ext *ext)
{
    uint32_t count;
    uint32_t maps = ext->image->tables[IMAGE_MAP_LIST].count;
    const struct image_map *map = image_table(ext, IMAGE_MAP_LIST, &count);
    if (maps > IMAGE_MAPS_MAX)
        return "it has too many maps";
    for (uint32_t i = 0; i < count; i++) {
        if (!is_string(ext, map[i].name))
            return "a map has no name";
    }
    const struct image_inner_map *inner = image_table(ext, IMAGE_INNER_MAPS, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (inner[i].map >= maps || inner[i].inner >= maps)
            return "an inner map does not exist";
    }
    return NULL;
}

static const char *step_flaw(const struct sched_ext *ext)
{
    uint32_t count;
    const struct image_step *steps = image_table(ext, IMAGE_STEPS, &count);
    const struct image_table *tables = ext->image->tables;
    for (uint32_t i = 0; i < count; i++) {
        const struct image_step *step = &steps[i];
        uint32_t targets = step->kind == STEP_CALL         ? tables[IMAGE_PROGRAMS].count
                           : step->kind == STEP_MAP_UPDATE ? tables[IMAGE_MAP_LIST].count
                                                           : (uint32_t)STEP_SLOTS;
        bool in_context = step->kind != STEP_KEEP && step->kind != STEP_USE
                              ? true
                              : in_range(step->offset, 8, STEP_CONTEXT_MAX);
        if (step->kind >= STEP_KINDS || step->target >= targets || !in_context ||
            !in_range(step->data, step->data_size, tables[IMAGE_DATA].count) ||
            (step->kind == STEP_CALL &&
             (step->size > STEP_CONTEXT_MAX || step->data_size > step->size)))
            return "a step of its user space is wrong";
    }
    return NULL;
}

static const char *image_flaw(const struct sched_ext *ext, size_t bytes)
{
    const char *flaw = header_flaw(ext->image, bytes);
    if (!flaw && !is_string(ext, ext->image->name))
        flaw = "it has no name";
    flaw = flaw ? flaw : region_flaw(ext);
    flaw = flaw ? flaw : program_flaw(ext);
    flaw = flaw ? flaw : map_flaw(ext);
    return flaw ? flaw : step_flaw(ext);
}

/* ---- memory ---- */

static uint64_t place(uint64_t *next, uint64_t bytes)
{
    uint64_t offset = *next;
    *next = (offset + bytes + 63) / 64 * 64;
    return offset;
}

static void lay_out_kernel(struct sched_ext *ext)
{
    struct kernel_layout *kernel = &ext->kernel;
    uint64_t next = 64; /* no structure is at offset 0 */
    kernel->possible_mask = place(&next, sizeof(cpumask_t));
    kernel->online_mask = place(&next, sizeof(cpumask_t));
    kernel->idle_mask = place(&next, sizeof(cpumask_t));
    kernel->idle_smt_mask = place(&next, sizeof(cpumask_t));
    kernel->idle_task = place(&next, sizeof(struct task_struct));
    kernel->memory_map = place(&next, sizeof(struct mm_struct));
    kernel->credentials = place(&next, sizeof(struct cred));
    kernel->signals = place(&next, sizeof(struct signal_struct));
    kernel->cpufreq = place(&next, sizeof(struct cpufreq_policy));
    kernel->exit_text = place(&next, SCX_EXIT_MSG_LEN);
    kernel->exit_reason = place(&next, 64);
    kernel->groups = place(&next, GROUPS_MAX * sizeof(struct group_structures));
    kernel->tasks = place(&next, (uint64_t)ext->task_limit * sizeof(struct task_struct));
    kernel->bytes = next;
}

static void take_region(struct sched_ext *ext, struct arena *arena, uint32_t number, uint64_t bytes,
                        bool read_only)
{
    unsigned char *base = arena_take(arena, bytes, 1);
    ext->guest.regions[number] = (struct region){base, 0, bytes, read_only ? 0 : bytes};
}

/* The arena is in two regions: its first page has no address in the kernel's form. */
static void lay_out_arena(struct sched_ext *ext, struct arena *arena, uint64_t bytes)
{
    take_region(ext, arena, REGION_ARENA, bytes, false);
    const struct region *region = &ext->guest.regions[REGION_ARENA];
    ext->arena_pages.count = bytes / PAGE_BYTES;
    ext->arena_pages.used = arena_take(arena, ext->arena_pages.count, 1);
    if (bytes > PAGE_BYTES && region->base)
        ext->guest.regions[REGION_NULL] = (struct region){region->base + PAGE_BYTES, PAGE_BYTES,
                                                          bytes - PAGE_BYTES, bytes - PAGE_BYTES};
}

static void lay_out_image(struct sched_ext *ext, struct arena *arena)
{
    uint32_t count;
    const struct image_region *regions = image_table(ext, IMAGE_REGIONS, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (regions[i].number == REGION_ARENA)
            lay_out_arena(ext, arena, regions[i].size);
        else
            take_region(ext, arena, regions[i].number, regions[i].size,
                        regions[i].flags & IMAGE_READ_ONLY);
    }
    for (uint32_t i = 0; i < ext->map_count; i++)
        lay_out_map(ext, &ext->maps[i], arena);
}

/* Takes all memory from the arena. If it only counts sizes, the pointers are null. The maps'
 * descriptions stay where they are until copy_tables() moves them. */
static void lay_out(struct sched_ext *ext, struct arena *arena)
{
    uint32_t units = HEAP_BYTES / HEAP_UNIT;
    ext->tasks = arena_take(arena, ext->task_limit, sizeof(*ext->tasks));
    ext->cpus = arena_take(arena, ext->cpu_count, sizeof(*ext->cpus));
    ext->queues = arena_take(arena, ext->cpu_count + 1 + DISPATCH_QUEUES_MAX, sizeof(*ext->queues));
    ext->requests = arena_take(arena, DISPATCH_BATCH_MAX, sizeof(*ext->requests));
    ext->timers = arena_take(arena, BPF_TIMERS_MAX, sizeof(*ext->timers));
    ext->heap.sizes = arena_take(arena, units, sizeof(uint32_t));
    ext->heap.references = arena_take(arena, units, sizeof(uint32_t));
    ext->heap.chain = arena_take(arena, units, sizeof(uint32_t));
    take_region(ext, arena, REGION_STACK, (GUEST_FRAMES_MAX + 1) * GUEST_FRAME_BYTES, false);
    take_region(ext, arena, REGION_CONTEXT, GUEST_CONTEXT_BYTES, false);
    take_region(ext, arena, REGION_KERNEL, ext->kernel.bytes, true);
    take_region(ext, arena, REGION_VARIABLES, (uint64_t)ext->cpu_count * KERNEL_VARIABLE_STRIDE,
                true);
    take_region(ext, arena, REGION_HEAP, HEAP_BYTES, false);
    lay_out_image(ext, arena);
}

static bool measure_maps(struct sched_ext *ext, struct simulator_error *error)
{
    const struct image_map *maps = image_table(ext, IMAGE_MAP_LIST, &ext->map_count);
    for (uint32_t i = 0; i < ext->map_count; i++) {
        ext->maps[i] = (struct ext_map){.image = &maps[i], .number = i};
        if (!measure_map(ext, &ext->maps[i], error))
            return false;
    }
    return true;
}

/* ---- contents ---- */

static void fill_regions(struct sched_ext *ext)
{
    uint32_t count;
    uint32_t bytes;
    const struct image_region *regions = image_table(ext, IMAGE_REGIONS, &count);
    const unsigned char *data = image_table(ext, IMAGE_DATA, &bytes);
    for (uint32_t i = 0; i < count; i++) {
        const struct image_region *region = &regions[i];
        memcpy(ext->guest.regions[region->number].base + region->data_offset, data + region->data,
               region->data_size);
        if (region->number != REGION_ARENA || region->data_size == 0)
            continue;
        uint64_t first = region->data_offset / PAGE_BYTES;
        uint64_t end = (region->data_offset + (uint64_t)region->data_size - 1) / PAGE_BYTES;
        for (uint64_t page = first; page <= end && page < ext->arena_pages.count; page++)
            ext->arena_pages.used[page] = 1;
    }
}

static void fill_inner_maps(struct sched_ext *ext)
{
    uint32_t count;
    const struct image_inner_map *inner = image_table(ext, IMAGE_INNER_MAPS, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct ext_map *map = &ext->maps[inner[i].map];
        if (map->inner && inner[i].index < map->capacity)
            map->inner[inner[i].index] = inner[i].inner + 1;
    }
}

static void begin_guest(struct sched_ext *ext)
{
    struct guest *guest = &ext->guest;
    guest->code = image_table(ext, IMAGE_INSTRUCTIONS, &guest->code_count);
    guest->strings = image_table(ext, IMAGE_STRINGS, &guest->string_bytes);
    guest->helpers = ext_helpers;
    guest->functions = ext_functions;
    guest->function_count = KERNEL_FUNCTION_NUMBERS;
    guest->trap_place = NONE;
    guest->call_limit = GUEST_CALL_LIMIT;
    guest->fields = (struct guest_fields){
        .region = REGION_KERNEL,
        .first = ext->kernel.tasks,
        .bytes = sizeof(struct task_struct),
        .count = ext->task_limit,
        .offsets = {offsetof(struct task_struct, scx.slice),
                    offsetof(struct task_struct, scx.dsq_vtime),
                    offsetof(struct task_struct, scx.disallow)},
        .sizes = {sizeof(u64), sizeof(u64), sizeof(bool)},
    };
}

static void begin_settings(struct sched_ext *ext)
{
    uint32_t count;
    const struct image_op *ops = image_table(ext, IMAGE_OPS, &count);
    uint32_t timeout = ext->image->timeout_ms ? ext->image->timeout_ms : WATCHDOG_MAX_MS;
    uint32_t batch = ext->image->dispatch_max_batch;
    for (uint32_t i = 0; i < OP_COUNT; i++)
        ext->op[i] = NONE;
    for (uint32_t i = 0; i < count; i++)
        ext->op[ops[i].op] = ops[i].instruction;
    ext->ops_flags = ext->image->flags;
    ext->watchdog_ns = timeout * 1000000ull;
    ext->batch = batch == 0                   ? SCX_DSP_DFL_MAX_BATCH
                 : batch < DISPATCH_BATCH_MAX ? batch
                                              : DISPATCH_BATCH_MAX;
    ext->direct_task = ext->dispatching = NONE;
    snprintf(ext->name, sizeof(ext->name), "%.60s", image_string(ext, ext->image->name));
}

/* Makes a scheduler from a draft, whose sizes are measured, and from the file. */
static struct sched_ext *allocate(const struct sched_ext *draft, const void *file, size_t bytes,
                                  struct simulator_error *error)
{
    struct arena arena = {0};
    struct sched_ext counted = *draft;
    struct ext_map *maps = malloc((draft->map_count + 1) * sizeof(*maps));
    if (maps) {
        memcpy(maps, draft->maps, draft->map_count * sizeof(*maps));
        counted.maps = maps;
        arena_take(&arena, 1, sizeof(counted));
        arena_take(&arena, bytes, 1);
        arena_take(&arena, draft->map_count, sizeof(*maps));
        lay_out(&counted, &arena);
    }
    free(maps);
    uint64_t needed = arena.taken;
    if (!maps || needed > MEMORY_MAX || !arena_map(&arena, arena.taken)) {
        set_error(error, "out of memory for the scheduler's maps");
        return NULL;
    }
    struct sched_ext *ext = arena_take(&arena, 1, sizeof(*ext));
    *ext = *draft;
    ext->image = memcpy(arena_take(&arena, bytes, 1), file, bytes);
    ext->maps = arena_take(&arena, draft->map_count, sizeof(*ext->maps));
    memcpy(ext->maps, draft->maps, draft->map_count * sizeof(*ext->maps));
    lay_out(ext, &arena);
    ext->arena = arena;
    return ext;
}

static void complete(struct sched_ext *ext)
{
    uint32_t count;
    const struct image_map *maps = image_table(ext, IMAGE_MAP_LIST, &count);
    for (uint32_t i = 0; i < count; i++)
        ext->maps[i].image = &maps[i];
    for (uint32_t slot = 0; slot < ext->task_limit; slot++)
        ext->tasks[slot].queue = ext->tasks[slot].next = ext->tasks[slot].previous = NONE;
    begin_guest(ext);
    begin_settings(ext);
    begin_queues(ext);
    fill_regions(ext);
    fill_inner_maps(ext);
}

/* Checks the file and makes a scheduler of it. */
static struct sched_ext *create(const char *path, const void *file, size_t bytes, uint32_t cpus,
                                uint32_t processes, struct simulator_error *error)
{
    struct ext_map *maps = calloc(IMAGE_MAPS_MAX, sizeof(*maps));
    struct sched_ext *ext = NULL;
    struct sched_ext draft = {.image = file,
                              .cpu_count = cpus,
                              .mask_words = (cpus + 63) / 64,
                              .task_limit = processes,
                              .maps = maps};
    const char *flaw = image_flaw(&draft, bytes);
    if (flaw)
        set_error(error, "%.200s: %s", path, flaw);
    else if (draft.image->cpus && draft.image->cpus != cpus)
        set_error(error, "%.200s: made for %u CPUs, but the machine has %u; make it again", path,
                  draft.image->cpus, cpus);
    else if (processes > TASKS_MAX)
        set_error(error, "%u processes: too many for a sched_ext scheduler; use at most %u",
                  processes, TASKS_MAX);
    else if (maps && measure_maps(&draft, error)) {
        lay_out_kernel(&draft);
        ext = allocate(&draft, file, bytes, error);
    }
    free(maps);
    if (ext)
        complete(ext);
    return ext;
}

struct sched_ext *sched_ext_create(const char *path, uint32_t cpus, uint32_t processes,
                                   struct simulator_error *error)
{
    size_t bytes;
    void *file = read_file(path, &bytes, error);
    struct sched_ext *ext = file ? create(path, file, bytes, cpus, processes, error) : NULL;
    free(file);
    return ext;
}

void sched_ext_destroy(struct sched_ext *ext)
{
    if (!ext)
        return;
    if (ext->callbacks)
        fclose(ext->callbacks);
    struct arena arena = ext->arena;
    arena_unmap(&arena);
}
