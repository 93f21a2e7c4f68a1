/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SCENARIO_SCENARIO_H
#define TESTS_SCENARIO_SCENARIO_H

#include <stddef.h>
#include <stdint.h>

/*
 * A scenario describes a few processes, for any machine to play: the kernel by the program
 * scenario.c, the tests' model by model.c. Each machine writes a trace, and the traces must tell
 * the same story (tests/shared/trace_story.py).
 *
 * A process works a little, acts, works, acts. Work between acts is a few hundredths of a tick, or
 * ACT_WORK_UNTIL for longer times. So all acts follow soon after a tick, and well apart: their
 * order is the same on all CPUs, whether or not system calls take time.
 *
 * A machine with one or two CPUs plays a scenario as follows. The process of the first role sleeps
 * on the last CPU until the tick SCENARIO_START, under round-robin and on an otherwise idle
 * machine. Then it switches to the policy, so that earlier events have no effect. Ticks of a
 * scenario count from there.
 */
#define SCENARIO_TICK_NS   10000000ull
#define SCENARIO_START     20
#define SCENARIO_STEPS_MAX 16

/* The unit of work. */
#define SCENARIO_WORK_NS (SCENARIO_TICK_NS / 100)

enum act {
    ACT_END,         /* ends the process, and each list of steps */
    ACT_FORK,        /* a child that plays `role` */
    ACT_WAIT,        /* waits for a child to end */
    ACT_SLEEP_UNTIL, /* sleeps until the tick `value`; continues at once if it has passed */
    ACT_WORK_UNTIL,  /* computes until it observes, on a CPU, the tick `value` */
    ACT_YIELD,
    ACT_SET_PRIORITY, /* sets the priority of `role` to `value` */
    ACT_SET_TICKETS,
    ACT_SET_WEIGHT,
};

struct step {
    uint32_t work; /* hundredths of a tick on a CPU, before the act */
    enum act act;
    uint32_t role;
    int32_t value;
};

/* The steps of a process. */
struct role {
    const char *name; /* up to 8 characters */
    struct step steps[SCENARIO_STEPS_MAX];
};

struct scenario {
    const char *name;
    const struct role *roles; /* the first one forks the others, or their parents */
    uint32_t role_count;
};

/* Returns a role's name in the form of a MARK record. */
static inline uint64_t scenario_label(const struct role *role)
{
    uint64_t label = 0;
    for (unsigned i = 0; i < 8 && role->name[i]; i++)
        label |= (uint64_t)(unsigned char)role->name[i] << (8 * i);
    return label;
}

#endif
