/* SPDX-License-Identifier: MIT */

#include "sim/tracing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policies/support/hooks.h"
#include "sim/process.h"
#include "sim/trace_file.h"

#define TRACE_BUFFER_RECORDS 16384

/* ---- records ---- */

/* Returns the CPU that handles the interrupt of an action from outside: the first CPU that returns
 * from the kernel. */
static struct cpu *outside_cpu(const struct simulator *simulator)
{
    struct cpu *match = &simulator->cpus[0];
    for (uint32_t i = 1; i < simulator->scheduler.cpus && match->resumes > simulator->now; i++) {
        if (simulator->cpus[i].resumes < match->resumes)
            match = &simulator->cpus[i];
    }
    return match;
}

void record_at(struct simulator *simulator, uint64_t time, uint32_t cpu, enum trace_kind kind,
               uint32_t process, uint32_t first, uint64_t second)
{
    if (simulator->trace.next) {
        if (cpu == OUTSIDE) {
            const struct cpu *takes = outside_cpu(simulator);
            cpu = takes->id;
            time = takes->resumes > time ? takes->resumes : time;
        }
        simulator->cpus[cpu].records++;
        trace_write(&simulator->trace, time, cpu, kind, process, first, second);
    }
}

void record_outside(struct simulator *simulator, enum trace_kind kind, uint32_t process,
                    uint32_t first, uint64_t second)
{
    record_at(simulator, simulator->now, OUTSIDE, kind, process, first, second);
}

/* Writes a text in a record of this kind. A long text continues in TEXT records. */
static void record_text(struct simulator *simulator, uint64_t time, uint32_t cpu,
                        enum trace_kind kind, uint32_t process, const char *text)
{
    size_t rest = strlen(text);
    rest = rest < 252 ? rest : 252;
    do {
        char packed[TEXT_BYTES_PER_RECORD] = {0};
        uint64_t second;
        uint32_t first;
        size_t part = rest < sizeof(packed) ? rest : sizeof(packed);
        memcpy(packed, text, part);
        memcpy(&second, packed, 8);
        memcpy(&first, packed + 8, 4);
        record_at(simulator, time, cpu, kind, process, first, second);
        kind = TRACE_TEXT;
        text += part;
        rest -= part;
    } while (rest > 0);
}

static enum share_attribute shares_by(const struct simulator *simulator)
{
    return policy_shares_by(simulator->engine->policy, &simulator->scheduler);
}

void record_policy(struct simulator *simulator, uint32_t cpu, const char *text)
{
    record_text(simulator, simulator->now, cpu, TRACE_POLICY, shares_by(simulator), text);
}

void record_tunable(struct simulator *simulator, uint32_t cpu, uint32_t index)
{
    record_at(simulator, simulator->now, cpu, TRACE_TUNABLE, shares_by(simulator), 0,
              (uint64_t)simulator->scheduler.tunable[index]);
    record_text(simulator, simulator->now, cpu, TRACE_TEXT, 0,
                simulator->engine->policy->tunables[index].name);
}

void record_note(struct simulator *simulator, const char *text)
{
    record_outside(simulator, TRACE_SAID, 0, 0, 0);
    record_text(simulator, simulator->now, OUTSIDE, TRACE_TEXT, 0, text);
}

void record_name(struct simulator *simulator, struct cpu *cpu)
{
    record_text(simulator, cpu->resumes, cpu->id, TRACE_EXEC, pid_of(cpu->current),
                name_of(simulator, program_of(simulator, cpu->current)));
}

/* ---- start and end of the trace ---- */

void trace_flush(struct trace *trace)
{
    trace_file_write(trace, trace->buffer, (size_t)((char *)trace->next - (char *)trace->buffer));
    trace->next = trace->buffer;
}

bool trace_failed(struct simulator *simulator)
{
    if (simulator->trace.error)
        fail(simulator, "the trace cannot be written: %s", strerror(simulator->trace.error));
    return simulator->trace.error != 0;
}

bool open_trace(struct simulator *simulator, const char *path, struct simulator_error *error)
{
    struct trace *trace = &simulator->trace;
    if (!trace_file_open(trace, path)) {
        set_error(error, "the trace %s cannot be created: %s", path, strerror(errno));
        return false;
    }
    trace->buffer = malloc(TRACE_BUFFER_RECORDS * sizeof(*trace->buffer));
    if (!trace->buffer) {
        set_error(error, "out of memory for the trace's buffer");
        return false;
    }
    trace->next = trace->buffer;
    trace->end = trace->buffer + TRACE_BUFFER_RECORDS;
    return true;
}

void close_trace(struct simulator *simulator)
{
    struct trace *trace = &simulator->trace;
    if (trace->file >= 0)
        trace_file_close(trace);
    free(trace->buffer);
    *trace = (struct trace){.file = -1, .records = trace->records, .error = trace->error};
}

bool begin_trace(struct simulator *simulator, const struct simulator_setup *setup,
                 struct simulator_error *error)
{
    struct trace *trace = &simulator->trace;
    const struct trace_header header = {
        .magic = TRACE_MAGIC,
        .version = TRACE_VERSION,
        .header_bytes = sizeof(struct trace_header),
        .record_bytes = sizeof(struct trace_record),
        .cpus = setup->cpus,
        .tick_ns = setup->tick_ns,
        .cycles_per_second = 1000000000,
        .seed = setup->seed,
    };
    if (!open_trace(simulator, setup->trace, error))
        return false;
    if (!trace_file_write(trace, &header, sizeof(header))) {
        set_error(error, "the trace %s cannot be written: %s", setup->trace,
                  strerror(trace->error));
        return false;
    }
    for (uint32_t cpu = 0; cpu < setup->cpus; cpu++)
        record_at(simulator, 0, cpu, TRACE_START, 0, 0, 0);
    return true;
}
