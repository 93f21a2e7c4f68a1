/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_OUTSIDE_H
#define SIM_ENGINE_OUTSIDE_H

/* Actions from outside (sim/control.h). */

#include "sim/engine/acts.h"

static void outside_fork(struct simulator *simulator, uint32_t program)
{
    struct process *process = process_create(simulator, NULL, program);
    record(simulator, OUTSIDE, TRACE_FORK, NULL, pid_of(process), 0);
    make_runnable(simulator, OUTSIDE, process, ENQUEUE_NEW, NULL);
}

static void outside_kill(struct simulator *simulator, struct process *process)
{
    kill_process(simulator, OUTSIDE, process, NULL);
}

static void outside_wake(struct simulator *simulator, struct process *process)
{
    if (process->waits == WAIT_CHILD)
        advance(simulator, process);
    else
        stop_waiting(simulator, process);
    make_runnable(simulator, OUTSIDE, process, ENQUEUE_WOKEN, NULL);
}

static void outside_give(struct simulator *simulator, struct channel *channel, uint64_t count)
{
    give(simulator, OUTSIDE, channel, count, true, NULL);
}

static void outside_set_attribute(struct simulator *simulator, struct process *process,
                                  enum attribute_kind kind, uint64_t value)
{
    set_attribute(simulator, OUTSIDE, process, kind, value);
}

#endif
