/* SPDX-License-Identifier: MIT */

#include "explore/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "explore/image.h"
#include "explore/machine.h"

struct image {
    uint32_t bytes;
    uint8_t content[IMAGE_BYTES_MOST];
};

/* A multiple of the periods that a policy may count from time 0 on. */
#define EARLIER_NS 4032000000000ull

static uint64_t state;

/* splitmix64 (Steele, Lea and Flood 2014). */
static uint32_t random_below(uint32_t limit)
{
    uint64_t value = state += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return (uint32_t)((value ^ value >> 31) % limit);
}

/* What the policy has decided: who is where, and when it wants to be called, from now on. */
struct seen {
    struct {
        uint64_t place;
        uint64_t level;
        uint64_t cpu;
    } tasks[TASKS_MOST];
    uint64_t current[QUEUES_MOST];
    uint64_t turn_end[QUEUES_MOST];
    uint64_t alarm[QUEUES_MOST];
    uint64_t held[QUEUES_MOST];
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
        seen.held[i] = machine.queues[i].held;
    }
    return seen;
}

/* The machine goes on from the image, which is that of where it comes to then. */
static struct seen step(struct image *image, bool relative, operation_t operation,
                        const uint8_t *draws)
{
    image_restore(image->content, image->bytes);
    machine_set_relative(relative);
    draws_choose(draws, 2);
    machine_do(operation);
    image->bytes = image_take(image->content);
    return look();
}

/* One of two machines that walk side by side. */
struct walker {
    bool relative;    /* its times are moved back after each step, as the law allows */
    uint64_t earlier; /* it begins so many nanoseconds before the other */
};

static uint32_t begin(struct image *image, uint64_t earlier)
{
    image_restore(NULL, 0);
    if (earlier > 0)
        image_shift(machine.now - NEAR, machine.now + NEAR, earlier);
    return image_take(image->content);
}

static bool walk(uint32_t length, struct walker first, struct walker second)
{
    static struct image moved, not_moved;
    operation_t operations[OPERATIONS_MOST];
    not_moved.bytes = begin(&not_moved, first.earlier);
    moved.bytes = begin(&moved, second.earlier);
    for (uint32_t i = 0; i < length; i++) {
        image_restore(moved.content, moved.bytes);
        operation_t operation = operations[random_below(machine_operations(operations))];
        const uint8_t draws[] = {(uint8_t)random_below(draw_values_count),
                                 (uint8_t)random_below(draw_values_count)};
        struct seen one = step(&not_moved, first.relative, operation, draws);
        struct seen other = step(&moved, second.relative, operation, draws);
        if (memcmp(&one, &other, sizeof(one)) != 0)
            return false;
    }
    return true;
}

/* Returns the first walk on which they decide otherwise, or `walks`. */
static uint32_t first_parting(uint32_t walks, uint32_t length, struct walker first,
                              struct walker second)
{
    uint32_t number = 0;
    for (; number < walks; number++) {
        state = number;
        if (!walk(length, first, second))
            break;
    }
    machine_set_relative(true);
    image_restore(NULL, 0);
    return number;
}

bool walks_agree(uint32_t walks, uint32_t length)
{
    uint32_t parting = first_parting(walks, length, (struct walker){0}, (struct walker){true, 0});
    if (parting < walks)
        fprintf(stderr, "walk %" PRIu32 ": it matters what time it is, against the law\n", parting);
    return parting == walks;
}

bool wrap_changes_walks(uint32_t walks, uint32_t length)
{
    const struct walker wraps = {0};
    const struct walker earlier = {false, EARLIER_NS};
    const struct walker between = {false, EARLIER_NS / 2};
    return machine.now > 0 && first_parting(walks, length, wraps, earlier) < walks &&
           first_parting(walks, length, between, earlier) == walks;
}
