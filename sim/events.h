/* SPDX-License-Identifier: MIT */
#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H

#include "sim/machine.h"

/*
 * The time when each CPU next acts without a tick or timer, in a tournament tree (Knuth 1973,
 * section 5.4.1). The leaves hold the CPUs' times, and each node above holds the earlier of the two
 * times below. events[1] is the root; CPU i has events[leaves + i].
 */

static inline uint64_t events_next(const struct simulator *simulator)
{
    return simulator->events[1];
}

/* Returns the CPU with the next event; the lowest CPU if several events have the same time. */
static inline uint32_t events_first_cpu(const struct simulator *simulator)
{
    uint32_t node = 1;
    while (node < simulator->event_leaves) {
        node *= 2;
        node += simulator->events[node] != simulator->events[1];
    }
    return node - simulator->event_leaves;
}

static inline void events_set(struct simulator *simulator, uint32_t cpu, uint64_t when)
{
    uint64_t *events = simulator->events;
    uint32_t node = simulator->event_leaves + cpu;
    if (events[node] == when)
        return;
    events[node] = when;
    while (node > 1) {
        uint64_t other = events[node ^ 1];
        uint64_t earlier = when < other ? when : other;
        node /= 2;
        if (events[node] == earlier)
            return;
        events[node] = when = earlier;
    }
}

#endif
