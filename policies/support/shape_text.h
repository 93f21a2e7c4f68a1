/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_SHAPE_TEXT_H
#define SCHEDLAB_SHAPE_TEXT_H

/*
 * A machine's shape as a host option, in one line without blanks, for example
 *
 *     core%4,cache/4,node/4,distance10.21:21.10,kind0.0.0.0.1.1.1.1,speed1024:512.256
 *
 * Parts that are left out mean that all CPUs are alike. `core`, `cache`, `node` and `kind` give
 * each CPU's number: as a list, or by a rule. In a rule, %M takes the CPU's number modulo M, and /N
 * then divides by N. `speed`: the capacities of each kind at its levels, the highest first.
 * `distance`: from each node to each. The simulator's model also reads three parts. `threads`: the
 * speed in thousandths that a CPU has left while one, two, ... siblings are busy. `cold`: the extra
 * nanoseconds of computation after a process came from another CPU of its core, of its cache, of
 * its node. `demand`: CPUs change their level.
 *
 * Users write shape files (docs/shapes.md); Python converts them to this text.
 */

#include "policies/policy.h"

#define SHAPE_TEXT static __attribute__((unused))

#define SHAPE_THREADS_MAX 8 /* of a core */
#define SHAPE_COLD_MAX    100000000
#define SPEED_WHOLE       1000 /* of a CPU whose siblings are idle */

/* The indexes of shape_model.cold: from another CPU of the same core, cache, node. */
enum shape_cold { COLD_CORE, COLD_CACHE, COLD_NODE, COLD_KINDS };

struct shape_model {
    uint16_t threads[SHAPE_THREADS_MAX]; /* by the number of busy siblings: thousandths */
    uint32_t cold[COLD_KINDS];
    bool demand;
};

struct shape_reader {
    const char *next;
    const char *flaw; /* null: none so far */
};

/* Reads a number from `least` to `most`. Returns 0 and sets the reader's flaw if there is none. */
SHAPE_TEXT uint32_t shape_number(struct shape_reader *reader, uint32_t least, uint32_t most)
{
    uint64_t number = 0;
    const char *text = reader->next;
    while (*text >= '0' && *text <= '9' && number <= most)
        number = number * 10 + (uint64_t)(*text++ - '0');
    bool good = text > reader->next && number >= least && number <= most;
    reader->next = text;
    if (!good && !reader->flaw)
        reader->flaw = "a number in it is missing, too small or too large";
    return good && !reader->flaw ? (uint32_t)number : 0;
}

/* Reads this character if it is next; else returns false. */
SHAPE_TEXT bool shape_takes(struct shape_reader *reader, char character)
{
    bool has_match = *reader->next == character && !reader->flaw;
    reader->next += has_match;
    return has_match;
}

/* Reads this word if it begins here; else returns false. */
SHAPE_TEXT bool shape_word(struct shape_reader *reader, const char *word)
{
    const char *text = reader->next;
    while (*word && *text == *word) {
        text++;
        word++;
    }
    if (*word)
        return false;
    reader->next = text;
    return true;
}

/* Reads numbers from `least` to `most`, separated by points. Returns their number: at most
 * `room`. */
SHAPE_TEXT uint32_t shape_numbers(struct shape_reader *reader, uint32_t *into, uint32_t room,
                                  uint32_t least, uint32_t most)
{
    uint32_t count = 0;
    do {
        if (count == room) {
            reader->flaw = "a list in it is too long";
            return count;
        }
        into[count++] = shape_number(reader, least, most);
    } while (shape_takes(reader, '.'));
    return count;
}

enum cpu_part { PART_CORE, PART_CACHE, PART_NODE, PART_KIND, CPU_PARTS };

SHAPE_TEXT uint16_t *shape_part(struct cpu_place *place, enum cpu_part part)
{
    switch (part) {
    case PART_CORE:
        return &place->core;
    case PART_CACHE:
        return &place->cache;
    case PART_NODE:
        return &place->node;
    default:
        return &place->kind;
    }
}

SHAPE_TEXT void shape_read_part(struct shape_reader *reader, struct machine_shape *shape,
                                uint32_t cpus, enum cpu_part part)
{
    bool by_rule = *reader->next == '%' || *reader->next == '/';
    uint32_t rest =
        shape_takes(reader, '%') ? shape_number(reader, 1, POLICY_CPUS_MAX) : POLICY_CPUS_MAX;
    uint32_t width =
        by_rule && shape_takes(reader, '/') ? shape_number(reader, 1, POLICY_CPUS_MAX) : 1;
    for (uint32_t cpu = 0; cpu < cpus && !reader->flaw; cpu++) {
        uint32_t number =
            by_rule ? cpu % rest / width : shape_number(reader, 0, POLICY_CPUS_MAX - 1);
        *shape_part(&shape->cpu[cpu], part) = (uint16_t)number;
        if (!by_rule && cpu + 1 < cpus && !shape_takes(reader, '.') && !reader->flaw)
            reader->flaw = "it does not say where each of the machine's CPUs is";
    }
}

SHAPE_TEXT void shape_read_speeds(struct shape_reader *reader, struct machine_shape *shape)
{
    shape->kinds = 0;
    do {
        if (shape->kinds == SHAPE_KINDS_MAX) {
            reader->flaw = "it has more than 16 kinds of CPUs";
            return;
        }
        struct cpu_kind *kind = &shape->kind[shape->kinds++];
        kind->levels = shape_numbers(reader, kind->capacity, SHAPE_LEVELS_MAX, 1, CAPACITY_FULL);
        for (uint32_t i = 1; i < kind->levels && !reader->flaw; i++) {
            if (kind->capacity[i] >= kind->capacity[i - 1])
                reader->flaw = "each level of a kind is slower than the one before it";
        }
    } while (shape_takes(reader, ':'));
}

SHAPE_TEXT void shape_read_distances(struct shape_reader *reader, struct machine_shape *shape)
{
    uint32_t row[SHAPE_NODES_MAX];
    shape->nodes = 0;
    do {
        if (shape->nodes == SHAPE_NODES_MAX) {
            reader->flaw = "it has more than 64 nodes";
            return;
        }
        uint32_t count = shape_numbers(reader, row, SHAPE_NODES_MAX, DISTANCE_LOCAL, UINT8_MAX);
        for (uint32_t i = 0; i < count; i++)
            shape->distance[shape->nodes][i] = (uint8_t)row[i];
        shape->nodes++;
    } while (shape_takes(reader, ':'));
}

SHAPE_TEXT void shape_read_word(struct shape_reader *reader, struct machine_shape *shape,
                                struct shape_model *model, uint32_t cpus)
{
    static const char *const parts[] = {"core", "cache", "node", "kind"};
    uint32_t numbers[SHAPE_THREADS_MAX];
    for (uint32_t i = 0; i < CPU_PARTS; i++) {
        if (shape_word(reader, parts[i])) {
            shape_read_part(reader, shape, cpus, (enum cpu_part)i);
            return;
        }
    }
    if (shape_word(reader, "speed")) {
        shape_read_speeds(reader, shape);
    } else if (shape_word(reader, "distance")) {
        shape_read_distances(reader, shape);
    } else if (shape_word(reader, "threads")) {
        uint32_t count = shape_numbers(reader, numbers, SHAPE_THREADS_MAX - 1, 1, SPEED_WHOLE);
        for (uint32_t i = 1; i < SHAPE_THREADS_MAX; i++)
            model->threads[i] = (uint16_t)numbers[i <= count ? i - 1 : count - 1];
    } else if (shape_word(reader, "cold")) {
        uint32_t count = shape_numbers(reader, model->cold, COLD_KINDS, 0, SHAPE_COLD_MAX);
        if (count != COLD_KINDS && !reader->flaw)
            reader->flaw = "expected three times of a cold cache";
    } else if (shape_word(reader, "demand")) {
        model->demand = true;
    } else {
        reader->flaw = "there is a word in it that is not known";
    }
}

/* ---- invariants ---- */

/* Returns what is wrong, or null. Checks that each CPU's kind and node are defined, that
 * distances are valid, and that some CPU has full capacity. */
SHAPE_TEXT const char *shape_numbers_flaw(const struct machine_shape *shape, uint32_t cpus)
{
    bool fastest = false;
    for (uint32_t cpu = 0; cpu < cpus; cpu++) {
        if (shape->cpu[cpu].kind >= shape->kinds)
            return "a CPU is of a kind whose speed it does not say";
        if (shape->cpu[cpu].node >= shape->nodes)
            return "a CPU is in a node whose distances it does not say";
        fastest |= shape->kind[shape->cpu[cpu].kind].capacity[0] == CAPACITY_FULL;
    }
    for (uint32_t i = 0; i < shape->nodes; i++) {
        for (uint32_t j = 0; j < shape->nodes; j++) {
            uint32_t distance = shape->distance[i][j];
            if (i == j ? distance != DISTANCE_LOCAL : distance < DISTANCE_LOCAL)
                return "distances are 10 within a node, and 10 to 255 between nodes";
        }
    }
    return fastest ? NULL : "no CPU has the capacity 1024, which the fastest has";
}

/* Returns what is wrong, or null. Checks that a core lies in one cache and is of one kind, and a
 * cache in one node. Links the rings of siblings. */
SHAPE_TEXT const char *shape_link(struct machine_shape *shape, uint32_t cpus)
{
    for (uint32_t cpu = 0; cpu < cpus; cpu++) {
        struct cpu_place *place = &shape->cpu[cpu];
        uint32_t threads = 1;
        uint32_t first = cpu;
        for (uint32_t step = 1; step < cpus; step++) {
            uint32_t other = (cpu + cpus - step) % cpus;
            const struct cpu_place *sibling = &shape->cpu[other];
            if (sibling->cache == place->cache && sibling->node != place->node)
                return "a cache lies in one node";
            if (sibling->core != place->core)
                continue;
            if (sibling->cache != place->cache || sibling->kind != place->kind)
                return "a core lies in one cache, and is of one kind";
            first = other;
            threads++;
        }
        place->sibling = (uint16_t)first;
        if (threads > SHAPE_THREADS_MAX)
            return "a core has at most 8 CPUs";
    }
    return NULL;
}

/* Starts with CPUs that are all alike: each is a core. */
SHAPE_TEXT void shape_begin(struct machine_shape *shape, uint32_t cpus)
{
    __builtin_memset(shape, 0, sizeof(*shape)); /* it is too large for a stack */
    shape->nodes = 1;
    shape->kinds = 1;
    shape->kind[0].levels = 1;
    shape->kind[0].capacity[0] = CAPACITY_FULL;
    shape->distance[0][0] = DISTANCE_LOCAL;
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        shape->cpu[cpu].core = (uint16_t)cpu;
}

/* Completes a shape whose text is read: derives the rest. Returns what is wrong, as the end of
 * an error message, or null. */
SHAPE_TEXT const char *shape_complete(struct machine_shape *shape, uint32_t cpus)
{
    const char *flaw = shape_numbers_flaw(shape, cpus);
    if (!flaw)
        flaw = shape_link(shape, cpus);
    for (uint32_t cpu = 0; cpu < cpus && !flaw; cpu++)
        shape->cpu[cpu].capacity_now = (uint16_t)shape->kind[shape->cpu[cpu].kind].capacity[0];
    return flaw;
}

/*
 * Reads a shape for a machine with this many CPUs. Returns what is wrong, as the end of an error
 * message, or null.
 */
SHAPE_TEXT const char *shape_read(const char *text, uint32_t cpus, struct machine_shape *shape,
                                  struct shape_model *model)
{
    struct shape_reader reader = {.next = text};
    shape_begin(shape, cpus);
    __builtin_memset(model, 0, sizeof(*model));
    for (uint32_t i = 0; i < SHAPE_THREADS_MAX; i++)
        model->threads[i] = SPEED_WHOLE;
    do {
        shape_read_word(&reader, shape, model, cpus);
    } while (shape_takes(&reader, ','));
    if (!reader.flaw && *reader.next)
        reader.flaw = "there is more in it than was expected";
    return reader.flaw ? reader.flaw : shape_complete(shape, cpus);
}

#endif
