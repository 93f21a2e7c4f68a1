/* SPDX-License-Identifier: MIT */

/* Records a machine's setup when the machine is created, and the actions from outside while the
 * machine runs. */

#include "sim/recipe.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4096

/* Adds bytes to the recipe, and returns their address. Returns null if memory is short. */
static unsigned char *extend(struct recipe *recipe, size_t bytes)
{
    size_t room = recipe->room ? recipe->room : FIRST_ROOM;
    while (room - recipe->used < bytes)
        room *= 2;
    unsigned char *moved = room > recipe->room ? realloc(recipe->bytes, room) : recipe->bytes;
    if (!moved)
        return NULL;
    recipe->bytes = moved;
    recipe->room = room;
    recipe->used += bytes;
    return moved + recipe->used - bytes;
}

static void put(struct recipe *recipe, const void *data, size_t bytes)
{
    size_t padded = recipe_padded(bytes);
    unsigned char *place = recipe->incomplete ? NULL : extend(recipe, padded);
    if (!place) {
        recipe->incomplete = true;
        return;
    }
    memset(place, 0, padded);
    if (bytes > 0)
        memcpy(place, data, bytes);
}

static void put_number(struct recipe *recipe, uint64_t number)
{
    put(recipe, &number, sizeof(number));
}

static void put_text(struct recipe *recipe, const char *text)
{
    size_t bytes = text ? strlen(text) + 1 : 1;
    put_number(recipe, bytes);
    put(recipe, text ? text : "", bytes);
}

static void put_workload(struct recipe *recipe, const struct simulator_workload *workload)
{
    put_number(recipe, workload->program_count);
    put_number(recipe, workload->text_count);
    put_number(recipe, workload->channel_count);
    for (uint32_t i = 0; i < workload->program_count; i++) {
        const struct simulator_program *program = &workload->programs[i];
        put_text(recipe, program->name);
        put_number(recipe, program->count);
        put(recipe, program->steps, program->count * sizeof(*program->steps));
    }
    for (uint32_t i = 0; i < workload->text_count; i++)
        put_text(recipe, workload->texts[i]);
    put(recipe, workload->channels, workload->channel_count * sizeof(*workload->channels));
}

size_t recipe_costs_bytes(const struct simulator_costs *costs)
{
    return offsetof(struct simulator_costs, policies) +
           costs->policy_count * sizeof(costs->policies[0]);
}

void recipe_begin(struct recipe *recipe, const struct simulator_setup *setup,
                  const struct simulator_workload *workload)
{
    const struct recipe_setup numbers = {
        .cpus = setup->cpus,
        .processes = setup->processes,
        .tick_ns = setup->tick_ns,
        .seed = setup->seed,
        .added_steps = setup->added_steps,
        .trace_queues = setup->trace_queues,
        .policy_clock = setup->policy_clock,
        .policy_run_time = setup->policy_run_time,
    };
    *recipe = (struct recipe){0};
    put(recipe, &numbers, sizeof(numbers));
    put_text(recipe, setup->policy);
    put_text(recipe, setup->tunables);
    put_text(recipe, setup->shape);
    put(recipe, &setup->costs, recipe_costs_bytes(&setup->costs));
    put_workload(recipe, workload);
}

void recipe_end(struct recipe *recipe)
{
    free(recipe->bytes);
    *recipe = (struct recipe){0};
}

/* ---- actions on the machine ---- */

static void put_entry(struct recipe *recipe, enum recipe_act act, uint32_t first, uint64_t second,
                      uint64_t third)
{
    const struct recipe_entry entry = {act, first, second, third};
    put(recipe, &entry, sizeof(entry));
}

/* Notes a run. Consecutive runs are recorded as one run until the latest time. */
void recipe_note_run(struct recipe *recipe, uint64_t until)
{
    if (!recipe->ran || until > recipe->ran_until)
        recipe->ran_until = until;
    recipe->ran = true;
}

void recipe_note_touch(struct recipe *recipe)
{
    if (recipe->ran) {
        put_entry(recipe, ACT_RUN, 0, recipe->ran_until, 0);
        recipe->ran = false;
        recipe->touched = 0;
    }
    if (!recipe->touched) {
        recipe->touched = recipe->used;
        put_entry(recipe, ACT_TOUCH, 0, 0, 0);
    }
}

void recipe_note(struct recipe *recipe, enum recipe_act act, uint32_t first, uint64_t second,
                 uint64_t third)
{
    if (recipe->touched)
        recipe->used = recipe->touched;
    recipe->touched = 0;
    put_entry(recipe, act, first, second, third);
}

void recipe_note_text(struct recipe *recipe, enum recipe_act act, const char *text)
{
    recipe_note(recipe, act, 0, 0, 0);
    put_text(recipe, text);
}

void recipe_note_workload(struct recipe *recipe, const struct simulator_workload *workload)
{
    recipe_note(recipe, ACT_ADD, 0, 0, 0);
    put_workload(recipe, workload);
}
