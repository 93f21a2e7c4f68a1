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

static bool walk(uint32_t length)
{
    static struct image moved, not_moved;
    operation_t operations[OPERATIONS_MOST];
    moved.bytes = not_moved.bytes = 0;
    for (uint32_t i = 0; i < length; i++) {
        image_restore(moved.content, moved.bytes);
        operation_t operation = operations[random_below(machine_operations(operations))];
        const uint8_t draws[] = {(uint8_t)random_below(draw_values_count),
                                 (uint8_t)random_below(draw_values_count)};
        struct seen one = step(&not_moved, false, operation, draws);
        struct seen other = step(&moved, true, operation, draws);
        if (memcmp(&one, &other, sizeof(one)) != 0)
            return false;
    }
    return true;
}

bool walks_agree(uint32_t walks, uint32_t length)
{
    for (uint32_t i = 0; i < walks; i++) {
        state = i;
        if (!walk(length)) {
            fprintf(stderr, "walk %" PRIu32 ": it matters what time it is, against the law\n", i);
            return false;
        }
    }
    return true;
}
