/* SPDX-License-Identifier: MIT */

#include "explore/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "explore/image.h"
#include "explore/machine.h"
#include "sim/checked/begins.h"

struct image {
    uint32_t bytes;
    uint8_t content[IMAGE_BYTES_MOST];
};

/* The clock passes the value where numbers wrap in the second tick, and run times pass it in the
 * first half of the walk. */
#define CLOCK_LATER_NS      (4 * TICK_NS)
#define RUN_TIME_EARLIER_NS (TICK_NS / 2 - 501000)

static uint64_t state;

/* Returns a random number below `limit` (splitmix64: Steele, Lea and Flood, 2014). */
static uint32_t random_below(uint32_t limit)
{
    uint64_t value = state += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return (uint32_t)((value ^ value >> 31) % limit);
}

/* What a policy decided in a step: the places of tasks, and the times that it set, relative to
 * now. */
struct seen {
    struct {
        uint64_t place;
        uint64_t level;
        uint64_t cpu;
    } tasks[TASKS_MOST];
    uint64_t current[QUEUES_MOST];
    uint64_t turn_end[QUEUES_MOST];
    uint64_t alarm[QUEUES_MOST];
    uint64_t ineligible[QUEUES_MOST];
};

static uint64_t from_now(uint64_t time)
{
    return time ? time - machine.now + 1 : 0;
}

static struct seen look(void)
{
    struct seen seen = {0};
    for (uint32_t i = 0; i < TASKS_MOST; i++) {
        const struct member *member = &machine.tasks[i];
        seen.tasks[i].place = member->place;
        seen.tasks[i].level = member->task.level;
        seen.tasks[i].cpu = member->task.cpu;
    }
    for (uint32_t i = 0; i < machine.scheduler.cpus; i++) {
        seen.current[i] = machine.current[i];
        seen.turn_end[i] = from_now(machine.turn_end[i]);
        seen.alarm[i] = from_now(machine.queues[i].alarm);
        seen.ineligible[i] = machine.queues[i].held;
    }
    return seen;
}

/* One of two machines that perform the same random walk. */
struct walker {
    bool relative;     /* times are moved back after each step, if the policy's promises allow
                        * it */
    uint64_t clock;    /* its first time */
    uint64_t run_time; /* initial run time of each new task */
};

/* Restores the machine from the image, performs an operation, and stores the new state in the
 * image. */
static struct seen step(struct image *image, const struct walker *walker, operation_t operation,
                        const uint8_t *draws)
{
    image_restore(image->content, image->bytes);
    machine_set_relative(walker->relative);
    machine_set_run_time(walker->run_time);
    draws_choose(draws, 2);
    machine_do(operation);
    image->bytes = image_take(image->content);
    return look();
}

static uint32_t begin(struct image *image, const struct walker *walker)
{
    image_restore(NULL, 0);
    image_shift(machine.now - NEAR, machine.now + NEAR, machine.now - walker->clock);
    return image_take(image->content);
}

static bool walk(uint32_t length, const struct walker *first, const struct walker *second)
{
    static struct image one, other;
    operation_t operations[OPERATIONS_MOST];
    one.bytes = begin(&one, first);
    other.bytes = begin(&other, second);
    for (uint32_t i = 0; i < length; i++) {
        image_restore(other.content, other.bytes);
        operation_t operation = operations[random_below(machine_operations(operations))];
        const uint8_t draws[] = {(uint8_t)random_below(draw_values_count),
                                 (uint8_t)random_below(draw_values_count)};
        struct seen seen = step(&one, first, operation, draws);
        struct seen also = step(&other, second, operation, draws);
        if (memcmp(&seen, &also, sizeof(seen)) != 0)
            return false;
    }
    return true;
}

/* Returns the number of the first walk with different decisions; `walks` if there is none. */
static uint32_t first_parting(uint32_t walks, uint32_t length, struct walker first,
                              struct walker second)
{
    uint32_t number = 0;
    for (; number < walks; number++) {
        state = number;
        if (!walk(length, &first, &second))
            break;
    }
    machine_set_relative(true);
    machine_set_run_time(0);
    image_restore(NULL, 0);
    return number;
}

bool walks_agree(uint32_t walks, uint32_t length)
{
    const struct walker absolute = {.clock = machine.now};
    const struct walker relative = {.relative = true, .clock = machine.now};
    uint32_t parting = first_parting(walks, length, absolute, relative);
    if (parting < walks)
        fprintf(stderr,
                "walk %" PRIu32 ": decisions depend on the absolute time, "
                "against the rule\n",
                parting);
    return parting == walks;
}

static struct walker walker_of(const struct begin *begin, uint64_t earlier)
{
    const uint64_t clock = begin->clock + CLOCK_LATER_NS - earlier;
    return (struct walker){.clock = clock / TICK_NS * TICK_NS,
                           .run_time = begin->run_time - RUN_TIME_EARLIER_NS - earlier};
}

/* Returns true if decisions differ only if the clock or run times pass the value of `begin`. */
static bool wraps_at(const struct begin *begin, uint32_t walks, uint32_t length)
{
    const struct walker earlier = walker_of(begin, begin->apart);
    if (first_parting(walks, length, walker_of(begin, 0), earlier) == walks)
        return false;
    for (uint32_t i = 0; i < BEGIN_EIGHTHS; i++) {
        const struct walker between = walker_of(begin, begin->apart / 8 * begin_eighths[i]);
        if (first_parting(walks, length, between, earlier) < walks)
            return false;
    }
    return true;
}

const char *value_that_changes_walks(uint32_t walks, uint32_t length)
{
    for (uint32_t i = 1; i < BEGINS && machine.now > 0; i++) {
        if (wraps_at(&begins[i], walks, length))
            return begins[i].value;
    }
    return NULL;
}
