/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SCENARIO_SCENARIO_H
#define TESTS_SCENARIO_SCENARIO_H

#include <stddef.h>
#include <stdint.h>

/*
 * A scenario says what a few processes do, for any machine to act out: our kernel
 * by the program scenario.c, the model of the tests by model.c. Each machine gives
 * a trace, and the traces must tell the same story (tests/shared/trace_story.py).
 *
 * A process works a little, acts, works, acts. With its work between acts a few
 * hundredths of a tick, and ACT_WORK_UNTIL for longer times, all acts follow soon
 * after a tick, and well apart from each other: in the same order on all CPUs
 * whether system calls take some time or none.
 *
 * A machine, of one or two CPUs, acts a scenario out so: the process of the first
 * role sleeps on the last CPU until the tick SCENARIO_START, under round-robin and
 * while nothing else goes on, and then switches to the policy, so that nothing of
 * what was before counts. Ticks of a scenario are counted from there.
 */
#define SCENARIO_TICK_NS   10000000ull
#define SCENARIO_START     20
#define SCENARIO_STEPS_MAX 16

/* The unit of work. */
#define SCENARIO_WORK_NS (SCENARIO_TICK_NS / 100)

enum act {
    ACT_END,         /* the process ends: what a list of steps ends with */
    ACT_FORK,        /* a child that plays `role` */
    ACT_WAIT,        /* for a child to end */
    ACT_SLEEP_UNTIL, /* the tick `value`; goes on at once if it is over */
    ACT_WORK_UNTIL,  /* computes until it finds, on a CPU, that the tick `value` has come */
    ACT_YIELD,
    ACT_SET_PRIORITY, /* of `role` to `value` */
    ACT_SET_TICKETS,
    ACT_SET_WEIGHT,
};

struct step {
    uint32_t work; /* hundredths of a tick on a CPU, before the act */
    enum act act;
    uint32_t role;
    int32_t value;
};

/* What a process does. */
struct role {
    const char *name; /* up to 8 characters */
    struct step steps[SCENARIO_STEPS_MAX];
};

struct scenario {
    const char *name;
    const struct role *roles; /* the first one forks the others, or their parents */
    uint32_t role_count;
};

/* A role's name as a MARK of the trace holds it. */
static inline uint64_t scenario_label(const struct role *role)
{
    uint64_t label = 0;
    for (unsigned i = 0; i < 8 && role->name[i]; i++)
        label |= (uint64_t)(unsigned char)role->name[i] << (8 * i);
    return label;
}

#endif
