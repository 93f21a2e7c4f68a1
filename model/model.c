/* SPDX-License-Identifier: MIT */

/* Initializes a model. */

#include "model/inside.h"

#define WINDOW   (10 * SECOND)
#define CPUS_MAX 65536

static bool is_header(const struct trace_header *header)
{
    return header->magic == TRACE_MAGIC && header->version == TRACE_VERSION &&
           header->record_bytes == sizeof(struct trace_record) && header->cpus >= 1 &&
           header->cpus <= CPUS_MAX && header->cycles_per_second >= 1 &&
           header->cycles_per_second <= TIME_MAX && header->tick_ns <= TIME_MAX;
}

static void begin_cpus(struct model *model)
{
    for (uint32_t number = 0; number < model->header.cpus; number++) {
        struct cpu *cpu = cpu_of(model, number);
        cpu->running = cpu->queue_first = cpu->queue_last = NONE;
        cpu->started_at = cpu->ended_at = NEVER;
        cpu->idle_since = cpu->unseen_since = -1;
    }
}

struct model *model_begin(void *memory, size_t bytes, const void *header, size_t header_bytes,
                          const char *policy, size_t policy_bytes, uint32_t shares_by)
{
    struct model *model = memory;
    struct text text = {.bytes = policy_bytes < TEXT_BYTES ? (uint32_t)policy_bytes : TEXT_BYTES};
    if (bytes < MODEL_MEMORY_MIN || header_bytes < sizeof(model->header))
        return NULL;
    __builtin_memcpy(&model->header, header, sizeof(model->header));
    model->bytes = bytes;
    if (!is_header(&model->header) || !memory_divide(model))
        return NULL;
    __builtin_memcpy(text.byte, policy, text.bytes);
    model->window = WINDOW;
    model->first = true;
    model->free_slot = model->ended_first = NONE;
    model->searched.only = -1;
    begin_cpus(model);
    policy_start(model, &text, shares_by);
    model->shared = has_shared_queue(model);
    return model;
}

void model_record_cost(struct model *model, double cost)
{
    model->record_cost = cost;
}
