/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_ENGINE_BASE_H
#define EXPLORE_ENGINE_BASE_H

/* What the other parts of the engine build on: operations, the state, output, and random draws. */

#include "explore/machine.h"

#include "explore/image.h"

#include <inttypes.h>
#include <sanitizer/asan_interface.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policies/registry.h"
#include "policies/support/attributes.h"
#include "policies/support/cpu_set.h"
#include "policies/support/groups.h"
#include "policies/support/preemption.h"
#include "policies/support/queueing.h"
#include "policies/support/rounds.h"
#include "policies/support/waits.h"
#include "sim/checked/hooks.h"

static const struct policy *const policy = &CHECKED_POLICY;

#define VALUES_MOST 4 /* maximum number of values that are tried for an attribute */
/* When the machine starts: some months after its boot, in the tick when 32-bit clocks of
 * nanoseconds and of microseconds wrap. No other number of a policy is that large. */
#define BEGIN_NS ((4194ull << 32) * 1000 / TICK_NS * TICK_NS)

enum kind {
    DO_NEW,   /* creates a task in the lowest free slot; its parent runs on CPU b - 1 (0: no
               * parent) */
    DO_WAKE,  /* wakes task a; or, if b > 0, a and b - 1, and b - 1 waited later for the
               * same lock */
    DO_KILL,  /* ends task a, which does not run */
    DO_MOVE,  /* moves the queued task a to CPU b */
    DO_SET,   /* sets an attribute of task a to a value; b encodes both */
    DO_PICK,  /* CPU a */
    DO_STEAL, /* CPU a takes a task from queue b */
    DO_PREEMPT,
    DO_YIELD,
    DO_BLOCK, /* the task on CPU a blocks, and waits for task b - 1 (0: for no task) */
    DO_END,
    DO_TICK,
    DO_PASS,  /* half a tick */
    DO_BEGIN, /* the policy starts again, as when a tunable is set */
    DO_CPUS,  /* restricts task a to CPU b - 1 (0: allows all CPUs) */
    DO_GROUP, /* group_changes[a] */
};

/* Which settings of groups are changed: of the root, of a group below it, or of the group below
 * that. */
static const struct {
    uint32_t group;
    enum group_field field;
    int64_t value;
} group_changes[] = {
    {1, GROUP_WEIGHT, 1},
    {1, GROUP_WEIGHT, GROUP_WEIGHT_DEFAULT},
    {1, GROUP_WEIGHT, GROUP_WEIGHT_MAX},
    {1, GROUP_QUOTA, 0},
    {1, GROUP_QUOTA, TICK_NS},
    {0, GROUP_QUOTA, 0},
    {0, GROUP_QUOTA, TICK_NS},
    {1, GROUP_PERIOD, GROUP_PERIOD_DEFAULT},
    {1, GROUP_PERIOD, 2 * TICK_NS},
    {2, GROUP_PARENT, 0},
    {2, GROUP_PARENT, 1},
};
#define GROUP_CHANGES (sizeof(group_changes) / sizeof(group_changes[0]))

struct machine machine;
static struct setup setup;
static uint32_t named;      /* which data of the host the policy reads: bits, by enum named */
static uint32_t attributes; /* which attributes change: bits, by enum attribute_kind */
static bool changes_cpus;   /* the CPU sets of tasks change */
static bool changes_groups;
static struct cpu_set alone[QUEUES_MOST]; /* each CPU */
static uint32_t asking;                   /* the CPU that needs a task */
static struct policy_choice choice;
static struct simulator_setup watched_setup; /* its words */
static struct watched watched;
static bool prints_acts;
static bool going_on;        /* true while a state is only continued (continuation.h): the
                              * policy's promises are not checked */
static uint32_t output_line; /* number of the current line of the output */
static uint64_t served_draw; /* the latest draw in service_check.h; 0: the search chooses the
                              * draws */

/* ---- draws ---- */

/* Results of draws that are tried. They cover draws modulo a number of tasks, or a number of
 * tickets if each task has 1 or TICKETS_MAX, in units of 1 and of 64. */
const uint64_t draw_values[] = {0, 1, 2, 3, 64, 128, 192, 64 * TICKETS_MAX};
const uint32_t draw_values_count = sizeof(draw_values) / sizeof(draw_values[0]);
static uint8_t draws[2];
static uint32_t drawn;

void draws_choose(const uint8_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < sizeof(draws); i++)
        draws[i] = i < count ? values[i] : 0;
    drawn = 0;
}

uint32_t draws_made(void)
{
    return drawn;
}

/* ---- output ---- */

static __attribute__((format(printf, 1, 2))) void print_act(const char *format, ...)
{
    va_list arguments;
    if (!prints_acts)
        return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}

void machine_set_printing(bool requested)
{
    prints_acts = requested;
    output_line = 0;
}

uint64_t chosen_draw(void)
{
    if (served_draw > 0)
        return (served_draw = served_draw * 6364136223846793005u + 1442695040888963407u) >> 33;
    uint8_t place = drawn < sizeof(draws) ? draws[drawn] : 0;
    drawn++;
    print_act(" [draws %" PRIu64 "]", draw_values[place]);
    return draw_values[place];
}

#endif
