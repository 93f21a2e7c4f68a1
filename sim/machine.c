/* SPDX-License-Identifier: MIT */

/* Runs and ends a machine, and counts its events. */

#include "sim/machine.h"

#include <errno.h>
#include <stdarg.h>

#include "policies/support/cpu_set.h"
#include "sim/events.h"
#include "sim/process_memory.h"
#include "sim/tracing.h"

/* ---- errors ---- */

void set_error(struct simulator_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
}

void fail(struct simulator *simulator, const char *format, ...)
{
    va_list arguments;
    if (simulator->status == SIMULATOR_FAILED)
        return;
    simulator->status = SIMULATOR_FAILED;
    va_start(arguments, format);
    vsnprintf(simulator->error.text, sizeof(simulator->error.text), format, arguments);
    va_end(arguments);
}

/* ---- the machine runs ---- */

enum simulator_status simulator_run(struct simulator *simulator, uint64_t until,
                                    struct simulator_error *error)
{
    if (simulator->finished)
        fail(simulator, "the run is finished and cannot continue");
    if (until > TIME_MAX)
        until = TIME_MAX;
    if (simulator->status == SIMULATOR_TIME)
        recipe_note_run(&simulator->recipe, until);
    const struct engine *engine = NULL;
    while (simulator->status == SIMULATOR_TIME && simulator->engine != engine) {
        engine = simulator->engine;
        engine->run(simulator, until);
    }
    if (simulator->status == SIMULATOR_TIME && simulator->now < until)
        simulator->now = until;
    if (simulator->status != SIMULATOR_FAILED)
        trace_failed(simulator);
    if (simulator->status == SIMULATOR_FAILED)
        *error = simulator->error;
    return simulator->status;
}

uint64_t simulator_next(const struct simulator *simulator)
{
    uint64_t event = events_next(simulator);
    uint64_t timer = timers_next(&simulator->timers);
    uint64_t earliest = timer < event ? timer : event;
    bool idle = simulator->busy == 0 && simulator->queued == 0 && event == NEVER;
    if (simulator->finished || simulator->status != SIMULATOR_TIME)
        return NEVER;
    if (cpu_set_next(&simulator->called, 0, simulator->scheduler.cpus) != NO_CPU)
        return simulator->now;
    return idle || earliest < simulator->next_tick ? earliest : simulator->next_tick;
}

bool simulator_flush(struct simulator *simulator, struct simulator_error *error)
{
    if (simulator->trace.next)
        trace_flush(&simulator->trace);
    if (trace_failed(simulator))
        *error = simulator->error;
    return !simulator->trace.error;
}

bool simulator_finish(struct simulator *simulator, struct simulator_error *error)
{
    struct trace *trace = &simulator->trace;
    if (simulator->engine->finish && !simulator->finished)
        simulator->engine->finish(simulator);
    if (trace->next && !simulator->finished) {
        for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
            struct cpu *cpu = &simulator->cpus[i];
            uint64_t time = cpu->resumes > simulator->now ? cpu->resumes : simulator->now;
            record_at(simulator, time, i, TRACE_END, 0, 0, cpu->records + 1);
        }
        trace_flush(trace);
        close_trace(simulator);
    }
    simulator->finished = true;
    if (trace_failed(simulator))
        *error = simulator->error;
    return !trace->error;
}

void simulator_count(const struct simulator *simulator, struct simulator_counts *counts)
{
    *counts = simulator->counts;
    counts->now = simulator->now;
    counts->records = simulator->trace.records;
    counts->process_bytes = process_bytes(simulator) + simulator->loop_depth * sizeof(uint32_t);
    for (uint32_t i = 0; i < simulator->scheduler.cpus; i++) {
        const struct cpu *cpu = &simulator->cpus[i];
        if (!cpu->current && simulator->now > cpu->idle_since)
            counts->idle_time += simulator->now - cpu->idle_since;
    }
}
