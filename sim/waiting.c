/* SPDX-License-Identifier: MIT */

#include "sim/waiting.h"

static bool is_dead(const struct simulator *simulator, const struct timer *timer)
{
    const struct process *process = process_at(simulator, timer_slot(timer));
    return process->waits != WAIT_TIMER || process->link != timer_number(timer);
}

/* Removes all dead timers from the heap. Called when there are many. */
static void remove_dead_timers(struct simulator *simulator)
{
    struct timers *timers = &simulator->timers;
    uint32_t remaining = 0;
    for (uint32_t i = 0; i < timers->count; i++) {
        if (!is_dead(simulator, &timers->heap[i]))
            timers->heap[remaining++] = timers->heap[i];
    }
    timers->count = remaining;
    timers->dead = 0;
    timers_order(timers);
}

void drop_dead_timers(struct simulator *simulator)
{
    struct timers *timers = &simulator->timers;
    if (timers->dead > timers->count / 2)
        remove_dead_timers(simulator);
    while (timers->dead > 0 && is_dead(simulator, &timers->heap[0])) {
        timers_take(timers);
        timers->dead--;
    }
}

/* Takes the process out of a list. Returns false if the list does not contain the process. */
static bool leave_line(const struct simulator *simulator, uint32_t *first, uint32_t *last,
                       const struct process *process)
{
    uint32_t before = NOBODY;
    for (uint32_t slot = *first; slot != NOBODY; slot = process_at(simulator, slot)->link) {
        if (slot != process->task.slot) {
            before = slot;
            continue;
        }
        if (before == NOBODY)
            *first = process->link;
        else
            process_at(simulator, before)->link = process->link;
        if (*last == slot)
            *last = before;
        return true;
    }
    return false;
}

void stop_waiting(struct simulator *simulator, struct process *process)
{
    struct cpu *cpu = &simulator->cpus[process->task.cpu];
    struct channel *channel;
    switch ((enum process_wait)process->waits) {
    case WAIT_NONE:
    case WAIT_CHILD:
        break;
    case WAIT_TIMER:
        process->waits = WAIT_NONE;
        simulator->timers.dead++;
        drop_dead_timers(simulator);
        break;
    case WAIT_DUE:
        leave_line(simulator, &cpu->due_first, &cpu->due_last, process);
        break;
    case WAIT_CHANNEL:
        channel = &simulator->channels[step_of(simulator, process)->target];
        leave_line(simulator, &channel->first, &channel->last, process);
        channel->waiting--;
        break;
    }
    process->waits = WAIT_NONE;
}
