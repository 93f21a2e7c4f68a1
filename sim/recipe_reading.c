/* SPDX-License-Identifier: MIT */

#include "sim/recipe_reading.h"

#include <stdlib.h>
#include <string.h>

void *recipe_take(struct recipe_rest *rest, uint64_t count, size_t item_bytes)
{
    if (count > rest->bytes / item_bytes)
        return NULL;
    void *part = rest->next;
    size_t padded = recipe_padded(count * item_bytes);
    rest->next += padded;
    rest->bytes -= padded;
    return part;
}

static bool take_number(struct recipe_rest *rest, uint64_t most, uint32_t *number)
{
    const uint64_t *part = recipe_take(rest, 1, sizeof(*part));
    if (!part || *part > most)
        return false;
    *number = (uint32_t)*part;
    return true;
}

const char *recipe_take_text(struct recipe_rest *rest)
{
    uint32_t bytes;
    if (!take_number(rest, UINT32_MAX, &bytes) || bytes == 0)
        return NULL;
    const char *text = recipe_take(rest, bytes, 1);
    return text && text[bytes - 1] == '\0' ? text : NULL;
}

void recipe_free_workload(struct simulator_workload *workload)
{
    free((void *)workload->programs);
    free((void *)workload->texts);
}

static bool take_program(struct recipe_rest *rest, struct simulator_program *program)
{
    program->name = recipe_take_text(rest);
    if (!program->name || !take_number(rest, UINT32_MAX, &program->count))
        return false;
    program->steps = recipe_take(rest, program->count, sizeof(*program->steps));
    return program->steps != NULL;
}

bool recipe_take_workload(struct recipe_rest *rest, struct simulator_workload *workload)
{
    *workload = (struct simulator_workload){0};
    uint64_t most = rest->bytes / sizeof(uint64_t); /* each element needs more */
    most = most < UINT32_MAX ? most : UINT32_MAX;
    if (!take_number(rest, most, &workload->program_count) ||
        !take_number(rest, most, &workload->text_count) ||
        !take_number(rest, most, &workload->channel_count))
        return false;
    struct simulator_program *programs = calloc(workload->program_count + 1ull, sizeof(*programs));
    const char **texts = calloc(workload->text_count + 1ull, sizeof(*texts));
    workload->programs = programs;
    workload->texts = texts;
    bool good = programs && texts;
    for (uint32_t i = 0; good && i < workload->program_count; i++)
        good = take_program(rest, &programs[i]);
    for (uint32_t i = 0; good && i < workload->text_count; i++)
        good = (texts[i] = recipe_take_text(rest)) != NULL;
    workload->channels =
        good ? recipe_take(rest, workload->channel_count, sizeof(*workload->channels)) : NULL;
    if (!workload->channels)
        recipe_free_workload(workload);
    return workload->channels != NULL;
}

static bool take_costs(struct recipe_rest *rest, struct simulator_costs *costs)
{
    size_t head = offsetof(struct simulator_costs, policies);
    struct recipe_rest ahead = *rest;
    const void *part = recipe_take(&ahead, 1, head);
    *costs = (struct simulator_costs){0};
    if (!part)
        return false;
    memcpy(costs, part, head);
    if (costs->policy_count > SIMULATOR_POLICY_COSTS_MAX)
        return false;
    size_t bytes = recipe_costs_bytes(costs);
    part = recipe_take(rest, bytes, 1);
    if (part)
        memcpy(costs, part, bytes);
    return part != NULL;
}

bool recipe_take_setup(struct recipe_rest *rest, struct simulator_setup *setup)
{
    const struct recipe_setup *numbers = recipe_take(rest, 1, sizeof(*numbers));
    if (!numbers || numbers->trace_queues > 1)
        return false;
    *setup = (struct simulator_setup){
        .cpus = numbers->cpus,
        .processes = numbers->processes,
        .tick_ns = numbers->tick_ns,
        .seed = numbers->seed,
        .added_steps = numbers->added_steps,
        .trace_queues = numbers->trace_queues,
        .policy_clock = numbers->policy_clock,
        .policy_run_time = numbers->policy_run_time,
    };
    setup->policy = recipe_take_text(rest);
    setup->tunables = setup->policy ? recipe_take_text(rest) : NULL;
    setup->shape = setup->tunables ? recipe_take_text(rest) : NULL;
    return setup->shape && take_costs(rest, &setup->costs);
}
