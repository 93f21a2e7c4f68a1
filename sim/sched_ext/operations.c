/* SPDX-License-Identifier: MIT */

/* Calls the scheduler's operations, and handles its errors. */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/machine.h"
#include "sim/sched_ext/engine.h"
#include "sim/sched_ext/state.h"
#include "sim/tracing.h"

static const char *const op_names[] = {
#define NAME(name, number, first, last) [number] = #name,
    SCHEDULER_OPS(NAME)
#undef NAME
};

/* ---- errors ---- */

void scx_exit(struct sched_ext *ext, enum scx_exit_kind kind, int64_t code, const char *text)
{
    if (ext->exit_kind != SCX_EXIT_NONE)
        return;
    ext->exit_kind = kind;
    ext->exit_code = code;
    ext->bypasses = true;
    snprintf(ext->exit_text, sizeof(ext->exit_text), "%s", text);
    report_end(ext);
}

void scx_error(struct sched_ext *ext, const char *format, ...)
{
    char text[SCX_EXIT_MSG_LEN];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (ext->nested > 0 && length >= 0 && (size_t)length < sizeof(text))
        snprintf(text + length, sizeof(text) - (size_t)length, ", in %s()",
                 op_names[ext->running_op]);
    scx_exit(ext, SCX_EXIT_ERROR, 0, text);
}

void report_end(struct sched_ext *ext)
{
    double seconds = (double)ext->simulator->now / 1e9;
    if (ext->exit_kind == SCX_EXIT_UNREG || ext->exit_kind == SCX_EXIT_DONE)
        return;
    if (ext->exit_kind == SCX_EXIT_UNREG_BPF)
        fail(ext->simulator, "scheduler %.40s ended itself at %.6f s: %.150s (exit code %lld)",
             ext->name, seconds, ext->exit_text, (long long)ext->exit_code);
    else
        fail(ext->simulator, "scheduler %.40s: %.190s, at %.6f s", ext->name, ext->exit_text,
             seconds);
}

/* Returns the source line of an instruction, or null. */
static const struct image_line *line_at(const struct sched_ext *ext, uint32_t instruction)
{
    uint32_t count;
    const struct image_line *lines = image_table(ext, IMAGE_LINES, &count);
    const struct image_line *line = NULL;
    for (uint32_t i = 0; i < count && lines[i].instruction <= instruction; i++)
        line = &lines[i];
    return line;
}

#define PLACE_BYTES 192

/* Writes the program, the number and the source line of an instruction. Replaces all characters
 * except printable ASCII. */
static void describe_instruction(const struct sched_ext *ext, uint32_t instruction, char *text)
{
    const struct image_program *program = image_program_at(ext, instruction);
    const struct image_line *line = program ? line_at(ext, instruction) : NULL;
    const char *file = line ? image_string(ext, line->file) : "";
    const char *base = strrchr(file, '/');
    char place[96] = "";
    if (line && *file && line->instruction >= program->first)
        snprintf(place, sizeof(place), " (%.60s:%u)", base ? base + 1 : file, line->line);
    snprintf(text, PLACE_BYTES, "program %.60s, instruction %u%s",
             program ? image_string(ext, program->name) : "outside the code",
             instruction - (program ? program->first : 0), place);
    for (; *text; text++) {
        if (*text < ' ' || *text > '~')
            *text = '?';
    }
}

void note_trap(struct sched_ext *ext)
{
    struct guest *guest = &ext->guest;
    if (!guest->trapped || ext->exit_kind != SCX_EXIT_NONE)
        return;
    char place[PLACE_BYTES];
    char text[SCX_EXIT_MSG_LEN];
    describe_instruction(ext, guest->trap_place, place);
    snprintf(text, sizeof(text), "%s: %s", place, guest->trap_text);
    scx_exit(ext, SCX_EXIT_ERROR, 0, text);
}

static void record_odd_instruction(const struct sched_ext *ext, uint32_t after, const char *what)
{
    char place[PLACE_BYTES];
    char text[PLACE_BYTES + 64];
    if (after == 0)
        return;
    describe_instruction(ext, after - 1, place);
    snprintf(text, sizeof(text), "%s: %s", place, what);
    record_note(ext->simulator, text);
}

void record_oddities(const struct sched_ext *ext)
{
    char text[64];
    record_odd_instruction(ext, ext->guest.zero_division, "divides by 0");
    record_odd_instruction(ext, ext->guest.bad_load, "loads from an invalid address");
    if (!ext->sliceless)
        return;
    snprintf(text, sizeof(text), "%s() dispatches a task without a time slice",
             op_names[ext->sliceless - 1]);
    record_note(ext->simulator, text);
}

/* ---- calls ---- */

bool sched_ext_write_callbacks(struct sched_ext *ext, const char *path,
                               struct simulator_error *error)
{
    ext->callbacks = fopen(path, "w");
    if (!ext->callbacks)
        set_error(error, "%.200s: %s", path, strerror(errno));
    return ext->callbacks != NULL;
}

static __attribute__((cold)) void write_callback(const struct sched_ext *ext, enum scheduler_op op,
                                                 uint64_t task)
{
    uint32_t slot = task_at(ext, task);
    int pid = slot == NONE ? 0 : task_struct_of(ext, slot)->pid;
    fprintf(ext->callbacks, "%" PRIu64 " %u %s %d\n", ext->simulator->now, ext->this_cpu,
            op_names[op], pid);
}

uint64_t call_from_outside(struct sched_ext *ext, uint32_t entry, const uint64_t arguments[5])
{
    uint64_t before = ext->guest.instructions;
    guest_begin(&ext->guest);
    uint64_t result = guest_call(&ext->guest, entry, arguments);
    uint64_t executed = ext->guest.instructions - before;
    ext->cpus[ext->this_cpu].owed += executed * ext->simulator->costs.instructions;
    return result;
}

uint64_t call_op(struct sched_ext *ext, enum scheduler_op op, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t place = CONTEXT_OPS + (uint64_t)ext->nested * CONTEXT_OP_BYTES;
    uint64_t *context = guest_memory(&ext->guest, guest_address(REGION_CONTEXT, place), 24);
    const uint64_t arguments[5] = {guest_address(REGION_CONTEXT, place)};
    enum scheduler_op outer = ext->running_op;
    if (ext->nested == CONTEXT_OPS_NESTED) {
        scx_error(ext, "operations are nested too deeply");
        return 0;
    }
    context[0] = a;
    context[1] = b;
    context[2] = c;
    bool from_outside = ext->nested++ == 0;
    ext->running_op = op;
    ext->calls[op]++;
    if (__builtin_expect(ext->callbacks != NULL, 0))
        write_callback(ext, op, op == OP_dispatch ? b : a);
    uint64_t result = from_outside ? call_from_outside(ext, ext->op[op], arguments)
                                   : guest_call(&ext->guest, ext->op[op], arguments);
    if (__builtin_expect(ext->guest.trapped, 0))
        note_trap(ext);
    ext->running_op = outer;
    ext->nested--;
    return result;
}

/* ---- texts ---- */

struct writer {
    char *text;
    size_t bytes;
    size_t used;
};

static void write_character(struct writer *writer, char character)
{
    bool safe = (unsigned char)character >= ' ' && character != 0x7f;
    if (writer->used + 1 < writer->bytes)
        writer->text[writer->used++] = safe || character == '\n' ? character : '?';
}

static void write_text(struct writer *writer, const char *text)
{
    while (*text)
        write_character(writer, *text++);
}

static void write_guest_text(const struct sched_ext *ext, struct writer *writer, uint64_t address)
{
    const char *character = guest_memory(&ext->guest, address, 1);
    if (!character)
        write_text(writer, "(null)");
    for (uint32_t i = 0; character && *character && i < 256; i++) {
        write_character(writer, *character);
        character = guest_memory(&ext->guest, address + i + 1, 1);
    }
}

/* Writes a number. `longs`: the number of letters l in its conversion. */
static void write_number(struct writer *writer, char conversion, uint32_t longs, uint64_t value)
{
    char text[32];
    if (longs == 0 && conversion != 'p')
        value = conversion == 'd' || conversion == 'i' ? (uint64_t)(int64_t)(int32_t)value
                                                       : (uint32_t)value;
    if (conversion == 'd' || conversion == 'i')
        snprintf(text, sizeof(text), "%lld", (long long)value);
    else if (conversion == 'u')
        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    else
        snprintf(text, sizeof(text), "%llx", (unsigned long long)value);
    write_text(writer, text);
}

void format_text(const struct sched_ext *ext, char *text, size_t bytes, const char *format,
                 size_t format_bytes, const unsigned char *values, uint32_t count)
{
    struct writer writer = {text, bytes, 0};
    const char *end = format + strnlen(format, format_bytes);
    uint32_t next = 0;
    while (format < end) {
        uint32_t longs = 0;
        if (*format != '%') {
            write_character(&writer, *format++);
            continue;
        }
        for (format++; format < end && strchr("0123456789-+ #.lzh", *format); format++)
            longs += *format == 'l' || *format == 'z';
        char conversion = '%';
        if (format < end)
            conversion = *format++;
        if (conversion == '%') {
            write_character(&writer, '%');
            continue;
        }
        uint64_t value = 0;
        if (next < count)
            memcpy(&value, values + (size_t)next++ * sizeof(value), sizeof(value));
        if (conversion == 's')
            write_guest_text(ext, &writer, value);
        else
            write_number(&writer, conversion, longs, value);
    }
    if (bytes > 0)
        text[writer.used] = '\0';
}

void format_guest_text(const struct sched_ext *ext, char *text, size_t bytes, uint64_t format,
                       uint64_t values, uint32_t value_bytes)
{
    const char *begin = guest_memory(&ext->guest, format, 1);
    const unsigned char *data = guest_memory(&ext->guest, values, value_bytes);
    if (!begin) {
        snprintf(text, bytes, "(no text)");
        return;
    }
    const struct region *region = &ext->guest.regions[format >> 32];
    size_t rest = (size_t)(region->base + region->size - (const unsigned char *)begin);
    format_text(ext, text, bytes, begin, rest, data, data ? value_bytes / 8 : 0);
}
