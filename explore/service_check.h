/* SPDX-License-Identifier: MIT */
#ifndef EXPLORE_SERVING_H
#define EXPLORE_SERVING_H

/*
 * Checks that each task eventually gets its share of the CPU.
 *
 * Starting with a state, all ready tasks only compute. If the policy declares that it shares the
 * CPU (shares_by), none of several tasks with the same attributes may wait endlessly. This file is
 * a part of engine.c.
 */

#define SERVED_TICKS 200

static bool has_first_attributes(const struct member *member)
{
    struct task first = {0};
    SET_FIRST_ATTRIBUTES(&first);
    for (uint32_t kind = 0; kind < ATTRIBUTE_KINDS; kind++) {
        if (attributes >> kind & 1 &&
            attribute_of(&member->task, kind) != attribute_of(&first, kind))
            return false;
    }
    return member->set == 0;
}

static bool have_equal_shares(void)
{
    for (uint32_t i = 0; i < setup.tasks; i++) {
        if (machine.tasks[i].place != PLACE_FREE && !has_first_attributes(&machine.tasks[i]))
            return false;
    }
    return !changes_groups && policy_shares_by(&POLICY, &machine.scheduler) != SHARES_EQUAL;
}

/* Makes all CPUs pick again, after another policy has taken over. */
static void stop_unknown(void)
{
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        if (running_on(cpu) && !running_on(cpu)->known)
            add(leave(cpu, STOP_RUNNABLE), ENQUEUE_PREEMPTED, NULL);
    }
}

/* Simulates one tick. `waiting`: tasks without a CPU so far, as bits. Returns the tasks that
 * still have had none. */
static uint32_t serve(uint32_t waiting)
{
    for (uint32_t cpu = 0; cpu < machine.scheduler.cpus; cpu++) {
        if (!running_on(cpu))
            pick_for_itself(cpu);
        if (running_on(cpu))
            waiting &= ~(1u << (running_on(cpu) - machine.tasks));
    }
    do_tick();
    return waiting;
}

void machine_serve(void)
{
    uint32_t waiting = 0;
    if (setup.acting || !have_equal_shares())
        return;
    print_act("     then all compute for %d ticks\n", SERVED_TICKS);
    machine_close();
    const bool requested = prints_acts;
    prints_acts = false;
    served_draw = 1;
    stop_unknown();
    for (uint32_t i = 0; i < setup.tasks; i++)
        waiting |= (uint32_t)(machine.tasks[i].place == PLACE_QUEUED) << i;
    for (uint32_t tick = 0; waiting && tick < SERVED_TICKS; tick++)
        waiting = serve(waiting);
    if (waiting)
        watch_broken("pid %d waits for %d ticks or more, although shares_by() promises each task "
                     "its share",
                     __builtin_ctz(waiting) + 1, SERVED_TICKS);
    served_draw = 0;
    prints_acts = requested;
    machine_open();
}

#endif
