/* SPDX-License-Identifier: MIT */

#include "sys_shape.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cpu_list.h"
#include "policies/support/cpu_set.h"
#include "policies/support/shape_text.h"
#include "text.h"

#define CACHES_MAX       16 /* of a CPU */
#define DISTANCE_UNKNOWN 20
#define SPEED_MOST       (1ull << 40) /* of a value given as a frequency, in kHz */

/* Data read about one machine. */
struct sys {
    const char *folder; /* /sys */
    uint32_t cpus;
    struct cpu_set online;
    struct machine_shape *shape;
    uint32_t gaps;
};

const char *sys_gap_text(enum sys_gap gap)
{
    static const char *const texts[] = {
        [GAP_NODES] = "memory nodes are unknown for some CPUs: one node is assumed",
        [GAP_DISTANCES] = "distances of nodes are missing or invalid: 20 is assumed",
        [GAP_THREADS] = "hardware threads are unknown: each CPU is assumed to be a core",
        [GAP_CACHES] = "caches are unknown: one cache per node is assumed",
        [GAP_SPLIT_CACHES] = "nodes share a cache: one cache per node is assumed",
        [GAP_CAPACITIES] = "capacities are unknown: speeds are taken from the highest frequencies",
        [GAP_SPEEDS] = "capacities and frequencies are unknown: all CPUs count as equally fast",
        [GAP_KINDS] = "there are more than 16 kinds of CPUs: all are assumed to be equally fast",
        [GAP_WHOLE] = "the data is inconsistent: all CPUs are assumed to be equal",
    };
    return texts[gap];
}

static void note(struct sys *sys, enum sys_gap gap)
{
    sys->gaps |= 1u << gap;
}

/* Reads the text of a file whose name printf() makes. Returns false if there is none. */
__attribute__((format(printf, 4, 5))) static bool read_text(const struct sys *sys, char *text,
                                                            size_t size, const char *format, ...)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/devices/system/", sys->folder);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + length, sizeof(path) - (size_t)length, format, arguments);
    va_end(arguments);
    return read_small_file(path, text, size) && *text;
}

/* Reads a number from a file of `cpu` or of a part of it; 0: none. */
static uint64_t read_number(const struct sys *sys, uint32_t cpu, const char *name)
{
    char text[32];
    int64_t number;
    bool read = read_text(sys, text, sizeof(text), "cpu/cpu%" PRIu32 "/%s", cpu, name);
    return read && text_to_number(text, &number) && number > 0 ? (uint64_t)number : 0;
}

/* Reads a set of CPUs. Returns false if none is given. */
static bool read_set(const struct sys *sys, uint32_t cpu, const char *name, struct cpu_set *set)
{
    char text[8192];
    return read_text(sys, text, sizeof(text), "cpu/cpu%" PRIu32 "/%s", cpu, name) &&
           cpu_list_read(text, set->words) && cpu_set_limit(set, sys->cpus) > 0;
}

static void read_core(struct sys *sys, uint32_t cpu)
{
    struct cpu_set siblings;
    if (read_set(sys, cpu, "topology/core_cpus_list", &siblings) ||
        read_set(sys, cpu, "topology/thread_siblings_list", &siblings))
        sys->shape->cpu[cpu].core = (uint16_t)cpu_set_next(&siblings, 0, sys->cpus);
    else
        note(sys, GAP_THREADS);
}

/* Reads the CPUs that share the CPU's last-level cache. Returns false if none is given. */
static bool read_last_cache(const struct sys *sys, uint32_t cpu, struct cpu_set *shared)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < CACHES_MAX; i++) {
        char name[64];
        char type[32];
        struct cpu_set these;
        snprintf(name, sizeof(name), "cache/index%" PRIu32 "/level", i);
        uint64_t level = read_number(sys, cpu, name);
        snprintf(name, sizeof(name), "cache/index%" PRIu32 "/shared_cpu_list", i);
        if (level <= last || !read_set(sys, cpu, name, &these))
            continue;
        bool typed = read_text(sys, type, sizeof(type),
                               "cpu/cpu%" PRIu32 "/cache/index%" PRIu32 "/type", cpu, i);
        if (typed && strcmp(type, "Instruction") == 0)
            continue;
        *shared = these;
        last = level;
    }
    return last > 0;
}

/* A cache has the number of the lowest CPU of its node that shares it: so no cache lies in two
 * nodes. The CPUs of a core share the first CPU's cache. */
static void read_cache(struct sys *sys, uint32_t cpu)
{
    struct cpu_place *places = sys->shape->cpu;
    struct cpu_set shared;
    uint32_t lowest = NO_CPU;
    bool has_cache = read_last_cache(sys, places[cpu].core, &shared);
    if (!has_cache)
        note(sys, GAP_CACHES);
    for (uint32_t i = 0; i < sys->cpus; i++) {
        if (has_cache && !cpu_set_has(&shared, i))
            continue;
        if (places[i].node != places[cpu].node && has_cache)
            note(sys, GAP_SPLIT_CACHES);
        else if (places[i].node == places[cpu].node && lowest == NO_CPU)
            lowest = i;
    }
    places[cpu].cache = (uint16_t)(lowest == NO_CPU ? cpu : lowest);
}

/* ---- nodes ---- */

/* Assigns the CPUs of a node to it, and records them in `placed`. */
static void read_node(const struct sys *sys, uint32_t node, struct cpu_set *placed)
{
    char text[8192];
    struct cpu_set node_cpus;
    if (!read_text(sys, text, sizeof(text), "node/node%" PRIu32 "/cpulist", node) ||
        !cpu_list_read(text, node_cpus.words))
        return;
    for (uint32_t cpu = 0; cpu < sys->cpus; cpu++) {
        if (!cpu_set_has(&node_cpus, cpu))
            continue;
        sys->shape->cpu[cpu].node = (uint16_t)node;
        cpu_set_add(placed, cpu);
    }
}

/* Returns false if some online CPU is in no node. */
static bool read_nodes(const struct sys *sys, struct cpu_set *nodes)
{
    char text[4096];
    struct cpu_set placed = {{0}};
    if (!read_text(sys, text, sizeof(text), "node/online") || !cpu_list_read(text, nodes->words))
        return false;
    for (uint32_t node = 0; node < SHAPE_NODES_MAX; node++) {
        if (!cpu_set_has(nodes, node))
            continue;
        read_node(sys, node, &placed);
        sys->shape->nodes = node + 1;
    }
    for (uint32_t cpu = 0; cpu < sys->cpus; cpu++) {
        if (cpu_set_has(&sys->online, cpu) && !cpu_set_has(&placed, cpu))
            return false;
    }
    return true;
}

/* Returns false if the distances from a node are missing or invalid. */
static bool read_distances(const struct sys *sys, uint32_t node, const struct cpu_set *nodes)
{
    char text[4096];
    char *rest = text;
    if (!read_text(sys, text, sizeof(text), "node/node%" PRIu32 "/distance", node))
        return false;
    for (uint32_t to = 0; to < sys->shape->nodes; to++) {
        if (!cpu_set_has(nodes, to))
            continue;
        char *number = strtok_r(rest, " ", &rest);
        int64_t distance;
        if (!number || !text_to_number(number, &distance) || distance < DISTANCE_LOCAL ||
            distance > UINT8_MAX || (to == node && distance != DISTANCE_LOCAL))
            return false;
        sys->shape->distance[node][to] = (uint8_t)distance;
    }
    return true;
}

static void take_distances(struct machine_shape *shape)
{
    for (uint32_t from = 0; from < shape->nodes; from++) {
        for (uint32_t to = 0; to < shape->nodes; to++)
            shape->distance[from][to] = from == to ? DISTANCE_LOCAL : DISTANCE_UNKNOWN;
    }
}

static void read_memory(struct sys *sys)
{
    struct cpu_set nodes = {{0}};
    if (!read_nodes(sys, &nodes)) {
        note(sys, GAP_NODES);
        sys->shape->nodes = 1;
        for (uint32_t cpu = 0; cpu < sys->cpus; cpu++)
            sys->shape->cpu[cpu].node = 0;
        return;
    }
    take_distances(sys->shape);
    for (uint32_t node = 0; node < sys->shape->nodes; node++) {
        if (!cpu_set_has(&nodes, node) || read_distances(sys, node, &nodes))
            continue;
        note(sys, GAP_DISTANCES);
        take_distances(sys->shape);
        return;
    }
}

/* ---- how fast CPUs are ---- */

/* Returns the CPU's speed relative to others. */
static uint64_t speed_of(struct sys *sys, uint32_t cpu)
{
    uint64_t capacity = read_number(sys, cpu, "cpu_capacity");
    uint64_t frequency = capacity ? 0 : read_number(sys, cpu, "cpufreq/cpuinfo_max_freq");
    if (!capacity)
        note(sys, frequency ? GAP_CAPACITIES : GAP_SPEEDS);
    uint64_t speed = capacity ? capacity : frequency;
    return speed > 0 && speed < SPEED_MOST ? speed : 1;
}

static uint64_t rounded(uint64_t total, uint64_t by)
{
    uint64_t result = (total + by / 2) / by;
    return result ? result : 1;
}

static int higher_first(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a;
    uint32_t second = *(const uint32_t *)b;
    return (first < second) - (first > second);
}

/* Computes the capacities at the CPU's frequencies, the highest first; all of them different. */
static void read_levels(const struct sys *sys, uint32_t cpu, struct cpu_kind *kind)
{
    char text[1024];
    char *rest = text;
    uint64_t frequencies[SHAPE_LEVELS_MAX];
    uint64_t highest = 0;
    uint32_t count = 0;
    uint32_t capacity = kind->capacity[0];
    if (!read_text(sys, text, sizeof(text),
                   "cpu/cpu%" PRIu32 "/cpufreq/scaling_available_frequencies", cpu))
        return;
    for (char *word; (word = strtok_r(rest, " ", &rest)) && count < SHAPE_LEVELS_MAX;) {
        int64_t frequency;
        if (!text_to_number(word, &frequency) || frequency <= 0 ||
            (uint64_t)frequency >= SPEED_MOST)
            continue;
        frequencies[count++] = (uint64_t)frequency;
        highest = (uint64_t)frequency > highest ? (uint64_t)frequency : highest;
    }
    for (uint32_t i = 0; i < count; i++)
        kind->capacity[i] = (uint32_t)rounded(capacity * frequencies[i], highest);
    qsort(kind->capacity, count, sizeof(kind->capacity[0]), higher_first);
    kind->levels = count > 0;
    for (uint32_t i = 1; i < count; i++) {
        if (kind->capacity[i] < kind->capacity[kind->levels - 1])
            kind->capacity[kind->levels++] = kind->capacity[i];
    }
    kind->levels = kind->levels ? kind->levels : 1;
}

/* Returns the number of the kind, adding it if necessary; SHAPE_KINDS_MAX: all are used. */
static uint32_t number_of(struct machine_shape *shape, const struct cpu_kind *kind)
{
    uint32_t number = 0;
    while (number < shape->kinds && (shape->kind[number].levels != kind->levels ||
                                     memcmp(shape->kind[number].capacity, kind->capacity,
                                            kind->levels * sizeof(kind->capacity[0])) != 0))
        number++;
    if (number == shape->kinds && number < SHAPE_KINDS_MAX)
        shape->kind[shape->kinds++] = *kind;
    return number;
}

/* The first kind is that of the lowest CPU; offline CPUs count as of this kind. CPUs of a core
 * are of one kind. */
static void read_kinds(struct sys *sys)
{
    struct machine_shape *shape = sys->shape;
    uint64_t highest = 1;
    for (uint32_t cpu = 0; cpu < sys->cpus; cpu++) {
        uint64_t speed = cpu_set_has(&sys->online, cpu) ? speed_of(sys, shape->cpu[cpu].core) : 0;
        highest = speed > highest ? speed : highest;
    }
    shape->kinds = 0;
    for (uint32_t cpu = 0; cpu < sys->cpus; cpu++) {
        uint32_t first = shape->cpu[cpu].core;
        struct cpu_kind kind = {.levels = 1};
        if (!cpu_set_has(&sys->online, cpu))
            continue;
        kind.capacity[0] = (uint32_t)rounded(speed_of(sys, first) * CAPACITY_FULL, highest);
        read_levels(sys, first, &kind);
        uint32_t number = number_of(shape, &kind);
        shape->cpu[cpu].kind = (uint16_t)number;
        if (number == SHAPE_KINDS_MAX)
            note(sys, GAP_KINDS);
    }
    if (!(sys->gaps & 1u << GAP_KINDS))
        return;
    shape->kinds = 1;
    shape->kind[0] = (struct cpu_kind){.levels = 1, .capacity = {CAPACITY_FULL}};
    for (uint32_t cpu = 0; cpu < sys->cpus; cpu++)
        shape->cpu[cpu].kind = 0;
}

/* If a core has more threads than the maximum, each CPU counts as a core. */
static void check_cores(struct sys *sys)
{
    uint32_t threads[POLICY_CPUS_MAX] = {0};
    bool good = true;
    for (uint32_t cpu = 0; cpu < sys->cpus; cpu++)
        good &= ++threads[sys->shape->cpu[cpu].core] <= SHAPE_THREADS_MAX;
    if (good)
        return;
    note(sys, GAP_THREADS);
    for (uint32_t cpu = 0; cpu < sys->cpus; cpu++)
        sys->shape->cpu[cpu].core = (uint16_t)cpu;
}

uint32_t sys_shape_read(const char *folder, uint32_t cpus, struct machine_shape *shape)
{
    struct sys sys = {.folder = folder, .cpus = cpus, .shape = shape};
    char text[8192];
    shape_begin(shape, cpus);
    if (!read_text(&sys, text, sizeof(text), "cpu/online") ||
        !cpu_list_read(text, sys.online.words))
        return 1u << GAP_WHOLE;
    read_memory(&sys);
    for (uint32_t cpu = 0; cpu < cpus; cpu++) {
        if (cpu_set_has(&sys.online, cpu))
            read_core(&sys, cpu);
    }
    check_cores(&sys);
    for (uint32_t cpu = 0; cpu < cpus; cpu++) {
        if (cpu_set_has(&sys.online, cpu))
            read_cache(&sys, cpu);
        else
            shape->cpu[cpu].cache = (uint16_t)cpu;
    }
    read_kinds(&sys);
    if (!shape_complete(shape, cpus))
        return sys.gaps;
    shape_begin(shape, cpus);
    shape_complete(shape, cpus);
    return sys.gaps | 1u << GAP_WHOLE;
}
