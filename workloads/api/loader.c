/* SPDX-License-Identifier: MIT */

#include "workloads/api/loader.h"

#include "workloads/api/host.h"
#include "workloads/api/workload.h"

#include "abi/attribute_names.h"
#include "abi/group_names.h"

#define PIECE_BYTES (1u << 20)

static bool read_all(int descriptor, char *destination, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        uint64_t left = bytes - done;
        int piece = (int)(left < PIECE_BYTES ? left : PIECE_BYTES);
        if (!host_read(descriptor, destination + done, piece))
            return false;
        done += (uint64_t)piece;
    }
    return true;
}

static bool step_is_sound(const struct workload_file_header *header,
                          const struct workload_step *step, uint32_t place)
{
    switch (step->kind) {
    case STEP_ARRIVE:
        return step->detail == ARRIVE_SELF ||
               (step->detail < ARRIVE_LAST &&
                step->target <
                    (step->detail == ARRIVE_CHILD ? header->program_count : header->channel_count));
    case STEP_FORK:
    case STEP_KILL:
        return step->target < header->program_count;
    case STEP_AFFINITY:
        return (step->target == WORKLOAD_SELF || step->target < header->program_count) &&
               step->value < header->text_count;
    case STEP_ATTRIBUTE:
        return (step->target == WORKLOAD_SELF || step->target < header->program_count) &&
               step->detail > 0 && step->detail < ATTRIBUTE_KINDS;
    case STEP_TAKE:
        return step->target < header->channel_count && step->value <= header->channel_count &&
               step->detail <= TAKE_LAST;
    case STEP_GIVE:
        return step->target < header->channel_count;
    case STEP_MEET:
        return step->target < header->channel_count && step->value >= 1;
    case STEP_SHARED_TIMER:
        return step->target < WORKLOAD_SHARED_TIMERS_MAX;
    case STEP_TIMER:
    case STEP_JOB:
        return step->detail < WORKLOAD_TIMERS_MAX;
    case STEP_SET_POLICY:
    case STEP_SET_TUNABLE:
        return step->target < header->text_count;
    case STEP_SETGROUP:
        return step->detail > 0 && step->detail < GROUP_FIELDS;
    case STEP_LOOP:
        return step->target < place && step->detail < WORKLOAD_LOOPS_MAX;
    default:
        return step->kind < STEP_COUNT;
    }
}

static bool program_is_sound(const struct workload_file_contents *workload,
                             const struct workload_file_program *program)
{
    const struct workload_file_header *header = workload->header;
    if (program->count == 0 || program->first > header->step_count ||
        program->count > header->step_count - program->first || program->name >= header->text_bytes)
        return false;
    const struct workload_step *steps = workload->steps + program->first;
    for (uint32_t i = 0; i < program->count; i++) {
        if (!step_is_sound(header, &steps[i], i))
            return false;
    }
    return steps[program->count - 1].kind == STEP_EXIT;
}

/* The checksum was right, so only a faulty compiler produces such a file. */
static bool is_sound(const struct workload_file_contents *workload)
{
    const struct workload_file_header *header = workload->header;
    if (header->program_count == 0 || header->text_bytes == 0 ||
        workload->characters[header->text_bytes - 1])
        return false;
    for (uint32_t i = 0; i < header->program_count; i++) {
        if (!program_is_sound(workload, &workload->programs[i]))
            return false;
    }
    for (uint32_t i = 0; i < header->text_count; i++) {
        if (workload->texts[i] >= header->text_bytes)
            return false;
    }
    return true;
}

struct workload_file_contents workload_load(const char *program, const char *path)
{
    uint64_t bytes;
    int descriptor = host_open_path(path, &bytes);
    if (descriptor < 0 || bytes == 0)
        workload_wrong_usage(program, path, descriptor < 0 ? "it cannot be read" : "it is empty");
    char *memory = host_shared_memory(bytes);
    if (!memory)
        host_fail("memory for the workload");
    if (!read_all(descriptor, memory, bytes))
        workload_wrong_usage(program, path, "it cannot be read");
    host_close(descriptor);

    const char *flaw = workload_file_flaw((const void *)memory, bytes);
    if (flaw)
        workload_wrong_usage(program, path, flaw);
    struct workload_file_contents workload = workload_file_contents((const void *)memory);
    if (!is_sound(&workload))
        workload_wrong_usage(program, path, "it is damaged: a step in it cannot be done");
    return workload;
}
