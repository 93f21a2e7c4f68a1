/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_ENGINE_BASE_H
#define EXPLORE_ENGINE_BASE_H

/* What an explored machine is made of: its operations, its state, what is told of it, and draws. */

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

#define VALUES_MOST 4 /* that an attribute is given */
/* When the machine begins: some months after its boot, in the tick in which a clock of 32 bits
 * wraps, be it of nanoseconds or of microseconds. A policy has no other numbers of that size. */
#define BEGIN_NS ((4194ull << 32) * 1000 / TICK_NS * TICK_NS)

enum kind {
    DO_NEW,   /* lowest free slot; by no task, or the one that runs on CPU b - 1 */
    DO_WAKE,  /* task a; or, if b > 0, a or b - 1, which came later to the same lock */
    DO_KILL,  /* task a, which does not run */
    DO_MOVE,  /* queued task a, to CPU b */
    DO_SET,   /* of task a: attribute and value b */
    DO_PICK,  /* CPU a */
    DO_STEAL, /* CPU a from queue b */
    DO_PREEMPT,
    DO_YIELD,
    DO_BLOCK, /* CPU a's task, which waits for task b - 1, or for none */
    DO_END,
    DO_TICK,
    DO_PASS,  /* half a tick */
    DO_BEGIN, /* the policy begins anew, as when a tunable is set */
    DO_CPUS,  /* task a may run on CPU b - 1 alone, or on all */
    DO_GROUP, /* group_changes[a] */
};

/* What users may set of groups, of those that there are then: the root, one below it, and one that
 * is below either. */
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
static uint32_t named;      /* bits, by enum named: what the policy reads */
static uint32_t attributes; /* bits, by enum attribute_kind: those that are changed */
static bool changes_cpus;   /* on which tasks may run */
static bool changes_groups;
static struct cpu_set alone[QUEUES_MOST]; /* each CPU */
static uint32_t asking;                   /* the CPU for which a task is picked */
static struct policy_choice choice;
static struct simulator_setup watched_setup; /* its words */
static struct watched watched;
static bool told;
static bool going_on;        /* what comes of a state is tried, and not what the law says of it */
static uint32_t here;        /* line of what is told */
static uint64_t served_draw; /* the latest draw of serving.h; 0: the search chooses draws */

/* ---- draws ---- */

/* What a draw modulo a number of tasks, or of tickets that are 1 or TICKETS_MAX each, in units of 1
 * and of 64, may come to. */
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

/* ---- what is told ---- */

static __attribute__((format(printf, 1, 2))) void tell(const char *format, ...)
{
    va_list arguments;
    if (!told)
        return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}

void machine_tell(bool wanted)
{
    told = wanted;
    here = 0;
}

uint64_t chosen_draw(void)
{
    if (served_draw > 0)
        return (served_draw = served_draw * 6364136223846793005u + 1442695040888963407u) >> 33;
    uint8_t place = drawn < sizeof(draws) ? draws[drawn] : 0;
    drawn++;
    tell(" [draws %" PRIu64 "]", draw_values[place]);
    return draw_values[place];
}

#endif
