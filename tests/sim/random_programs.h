/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SIM_RANDOM_PROGRAMS_H
#define TESTS_SIM_RANDOM_PROGRAMS_H

/*
 * Machines, programs and external acts, made of bytes: a fuzzer's or random ones. Any bytes give
 * something that can run; after the last byte, 0 is drawn.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "abi/system_calls.h"
#include "abi/trace_format.h"
#include "policies/registry.h"
#include "sim/control.h"

#define RANDOM_PROGRAMS   5
#define RANDOM_STEPS      12
#define RANDOM_CHANNELS   3
#define RANDOM_TEXTS      3 /* policies; after them */
#define RANDOM_LISTS      3 /* lists of CPUs, each with a CPU that every machine has */
#define RANDOM_TEXT_BYTES 96
#define RANDOM_FUNCTION   static __attribute__((unused))

struct source {
    const uint8_t *bytes;
    size_t left;
};

/* 0 to below - 1; `below` is 256 at most. */
RANDOM_FUNCTION uint32_t draw(struct source *source, uint32_t below)
{
    if (source->left == 0)
        return 0;
    source->left--;
    return *source->bytes++ % below;
}

/* Up to some ticks of 1 ms, in nanoseconds; often whole ticks. */
RANDOM_FUNCTION uint64_t draw_time(struct source *source)
{
    uint64_t ticks = draw(source, 4) * 1000000ull;
    return ticks + (draw(source, 2) ? draw(source, 256) * 3900ull : 0);
}

/* A policy, or a preset of one. */
RANDOM_FUNCTION void draw_policy(struct source *source, char text[RANDOM_TEXT_BYTES])
{
    const struct policy *policy = policies[draw(source, policy_sources_count)];
    uint32_t preset = draw(source, policy->preset_count + 1);
    if (preset == 0)
        snprintf(text, RANDOM_TEXT_BYTES, "%s", policy->name);
    else
        snprintf(text, RANDOM_TEXT_BYTES, "%s:%s", policy->name, policy->presets[preset - 1].name);
}

struct random_workload {
    struct workload_step steps[RANDOM_PROGRAMS][RANDOM_STEPS];
    struct simulator_program programs[RANDOM_PROGRAMS];
    char text_bytes[RANDOM_TEXTS][RANDOM_TEXT_BYTES];
    const char *texts[RANDOM_TEXTS + RANDOM_LISTS];
    uint64_t channels[RANDOM_CHANNELS];
    struct simulator_workload workload;
};

/* Programs fork only later programs, so that every workload ends. */
RANDOM_FUNCTION struct workload_step draw_step(struct source *source, uint32_t program,
                                               uint32_t place)
{
    struct workload_step step = {.kind = (uint8_t)draw(source, STEP_COUNT)};
    switch (step.kind) {
    case STEP_RUN:
    case STEP_RUN_UNTIL:
    case STEP_SLEEP:
    case STEP_SLEEP_UNTIL:
        step.value = draw_time(source);
        break;
    case STEP_SLEEP_TICKS:
        step.value = draw(source, 5);
        break;
    case STEP_TIMER:
    case STEP_JOB:
        step.detail = (uint8_t)draw(source, 2);
        step.target = draw(source, 2);
        step.value = draw_time(source);
        break;
    case STEP_SHARED_TIMER:
        step.detail = (uint8_t)draw(source, 2);
        step.target = draw(source, 2);
        step.value = draw_time(source);
        break;
    case STEP_ARRIVE:
        step.value = draw_time(source);
        step.detail = (uint8_t)draw(source, ARRIVE_LAST + 1);
        if (step.detail == ARRIVE_CHILD && program + 1 == RANDOM_PROGRAMS)
            step.detail = ARRIVE_THING;
        step.target = step.detail == ARRIVE_CHILD
                          ? program + 1 + draw(source, RANDOM_PROGRAMS - program - 1)
                          : draw(source, RANDOM_CHANNELS);
        break;
    case STEP_WAIT:
        step.detail = (uint8_t)draw(source, 2);
        break;
    case STEP_FORK:
        if (program + 1 < RANDOM_PROGRAMS)
            step.target = program + 1 + draw(source, RANDOM_PROGRAMS - program - 1);
        else
            step.kind = STEP_YIELD;
        break;
    case STEP_KILL:
        step.target = 1 + draw(source, RANDOM_PROGRAMS - 1);
        break;
    case STEP_TAKE:
        step.target = draw(source, RANDOM_CHANNELS);
        step.value = draw(source, RANDOM_CHANNELS + 1);
        break;
    case STEP_GIVE:
        step.target = draw(source, RANDOM_CHANNELS);
        step.detail = (uint8_t)draw(source, 2);
        step.value = draw(source, 3);
        break;
    case STEP_MEET:
        step.target = draw(source, RANDOM_CHANNELS);
        step.value = 1 + draw(source, 3);
        break;
    case STEP_ATTRIBUTE:
        step.detail = (uint8_t)(ATTRIBUTE_PRIORITY + draw(source, 3));
        step.target = draw(source, 2) ? draw(source, RANDOM_PROGRAMS) : WORKLOAD_SELF;
        step.value = 1 + draw(source, 10);
        break;
    case STEP_AFFINITY:
        step.target = draw(source, 2) ? draw(source, RANDOM_PROGRAMS) : WORKLOAD_SELF;
        step.value = RANDOM_TEXTS + draw(source, RANDOM_LISTS);
        break;
    case STEP_SETGROUP:
        step.target = 1 + draw(source, 3);
        step.detail = (uint8_t)(GROUP_PARENT + draw(source, 4));
        step.value = step.detail == GROUP_PARENT ? draw(source, step.target)
                                                 : (1 + draw(source, 20)) * 1000000ull;
        if (step.detail == GROUP_WEIGHT)
            step.value = 1 + draw(source, GROUP_WEIGHT_MAX);
        break;
    case STEP_MARK:
        step.detail = MARK_NOTE;
        step.value = draw(source, 256);
        break;
    case STEP_SET_POLICY:
        step.target = draw(source, RANDOM_TEXTS);
        break;
    case STEP_LOOP:
        step.target = place > 0 ? draw(source, place) : 0;
        step.value = 2 + draw(source, 2);
        break;
    default: /* needs nothing more; a tunable would have to be one of the policy's */
        break;
    }
    bool is_valid = step.kind != STEP_SET_TUNABLE && step.kind != STEP_HOTPLUG &&
                    (step.kind != STEP_LOOP || place > 0);
    return is_valid ? step : (struct workload_step){.kind = STEP_RUN, .value = 100000};
}

/* Nested loops have separate levels only if they are different loops. One loop per program
 * suffices here, and its first step is always executed. */
RANDOM_FUNCTION uint32_t draw_program(struct source *source, struct random_workload *made,
                                      uint32_t program)
{
    uint32_t count = 0;
    bool looped = false;
    uint32_t requested = 1 + draw(source, RANDOM_STEPS - 4);
    while (count < requested) {
        struct workload_step step = draw_step(source, program, count);
        if (step.kind == STEP_LOOP && looped)
            step = (struct workload_step){.kind = STEP_YIELD};
        looped |= step.kind == STEP_LOOP;
        if (step.kind == STEP_EXIT)
            break;
        made->steps[program][count++] = step;
    }
    return count;
}

/* `lasting`: the first process ends with a very long sleep, so that the run lasts even if all
 * other processes have ended. */
RANDOM_FUNCTION void draw_workload(struct source *source, struct random_workload *made,
                                   bool lasting)
{
    for (uint32_t i = 0; i < RANDOM_TEXTS; i++) {
        draw_policy(source, made->text_bytes[i]);
        made->texts[i] = made->text_bytes[i];
    }
    made->texts[RANDOM_TEXTS] = "0";
    made->texts[RANDOM_TEXTS + 1] = "0,2";
    made->texts[RANDOM_TEXTS + 2] = "0-1,3-1023";
    for (uint32_t i = 0; i < RANDOM_CHANNELS; i++)
        made->channels[i] = draw(source, 3);
    for (uint32_t i = 0; i < RANDOM_PROGRAMS; i++) {
        static const char *const names[] = {"root", "one", "two", "three", "four"};
        struct workload_step *steps = made->steps[i];
        uint32_t count = draw_program(source, made, i);
        if (i == 0) {
            steps[count++] = (struct workload_step){.kind = STEP_FORK, .target = 1};
            steps[count++] = (struct workload_step){.kind = STEP_SLEEP,
                                                    .value = lasting ? 1ull << 60 : 30000000};
        }
        steps[count++] = (struct workload_step){.kind = STEP_EXIT};
        made->programs[i] = (struct simulator_program){names[i], steps, count};
    }
    made->workload = (struct simulator_workload){
        .programs = made->programs,
        .program_count = RANDOM_PROGRAMS,
        .texts = made->texts,
        .text_count = RANDOM_TEXTS + RANDOM_LISTS,
        .channels = made->channels,
        .channel_count = RANDOM_CHANNELS,
    };
}

/* Any act on any PID; an act on a missing process is refused. */
RANDOM_FUNCTION void draw_act(struct source *source, struct simulator *simulator)
{
    struct simulator_process processes[64];
    struct simulator_error error;
    char text[RANDOM_TEXT_BYTES];
    uint32_t count = simulator_processes(simulator, processes, 64);
    int32_t pid = processes[draw(source, count < 64 ? count : 64)].pid;
    switch (draw(source, 9)) {
    case 0:
        simulator_fork(simulator, draw(source, RANDOM_PROGRAMS + 1), &error);
        break;
    case 1:
        simulator_kill(simulator, pid, &error);
        break;
    case 2:
        simulator_wake(simulator, pid, &error);
        break;
    case 3:
        simulator_migrate(simulator, pid, draw(source, 17), &error);
        break;
    case 4:
        simulator_give(simulator, draw(source, RANDOM_CHANNELS + 1), draw(source, 3), &error);
        break;
    case 5:
    case 6:
        simulator_set_attribute(simulator, pid, draw(source, 5), draw(source, 13), &error);
        break;
    case 7:
        draw_policy(source, text);
        simulator_set_policy(simulator, text, &error);
        break;
    case 8:
        snprintf(text, sizeof(text), "slice=%u", draw(source, 12));
        simulator_set_tunable(simulator, text, &error);
        break;
    }
}

#endif
