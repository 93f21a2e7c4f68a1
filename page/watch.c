/* SPDX-License-Identifier: MIT */

/*
 * The model of a page's data (model/model.h), as functions of a WebAssembly module, for
 * session/system.js of the monitor's page. There is one in each instance, next to the machine that
 * it watches.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "abi/trace_format.h"
#include "model/model.h"

#define EXPORTED(name) __attribute__((export_name(#name), used)) name

static struct model *model;

/* `shares_by`: enum attribute_kind, or 0. Returns false if the header is invalid, or memory is
 * short. */
bool EXPORTED(watch_begin)(const void *header, const char *policy, uint32_t shares_by)
{
    void *memory = aligned_alloc(64, MODEL_MEMORY_MIN);
    if (!memory)
        return false;
    memset(memory, 0, MODEL_MEMORY_MIN);
    model = model_begin(memory, MODEL_MEMORY_MIN, header, sizeof(struct trace_header), policy,
                        strlen(policy), shares_by);
    return model != NULL;
}

void EXPORTED(watch_feed)(const void *records, size_t bytes)
{
    model_feed(model, records, bytes / sizeof(struct trace_record));
}

void EXPORTED(watch_reach)(int64_t time)
{
    model_reach(model, time);
}

void EXPORTED(watch_window)(int64_t window)
{
    model_set_window(model, window);
}

/* Sets the processes that exist only for the monitor. */
void EXPORTED(watch_own)(const uint32_t *pids, size_t count)
{
    model_own(model, pids, count);
}

/* Sets the CPU time that a record costs, in nanoseconds. */
void EXPORTED(watch_record_cost)(double cost)
{
    model_record_cost(model, cost);
}

void EXPORTED(watch_status)(int64_t pid, int64_t priority, int64_t tickets, int64_t slice)
{
    const struct model_status row = {
        .pid = pid, .priority = priority, .tickets = tickets, .slice = slice};
    model_status(model, &row, 1);
}

const void *EXPORTED(watch_frame)(size_t max_runs)
{
    return model_frame(model, max_runs);
}

const void *EXPORTED(watch_history)(void)
{
    return model_history(model);
}

const void *EXPORTED(watch_explain)(uint32_t pid)
{
    return model_explain(model, pid);
}
