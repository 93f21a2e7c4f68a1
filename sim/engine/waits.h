/* SPDX-License-Identifier: MIT */
#ifndef SIM_ENGINE_WAITS_H
#define SIM_ENGINE_WAITS_H

/* Steps that make processes wait: for a time, or in the list of a channel. */

#include "sim/engine/mechanism.h"

/* Blocks the CPU's process. */
static void block(struct simulator *simulator, struct cpu *cpu, enum process_wait waits,
                  enum block_reason reason)
{
    cpu->current->waits = waits;
    record(simulator, cpu->id, TRACE_BLOCK, cpu->current, reason, 0);
    reschedule(simulator, cpu, STOP_BLOCKED, ENQUEUE_WOKEN, true);
}

static void act_sleep(struct simulator *simulator, struct cpu *cpu, uint64_t until)
{
    struct process *process = cpu->current;
    if (until <= simulator->now) {
        advance(simulator, process);
        return;
    }
    process->link = timer_number_of(simulator->timers.started);
    timers_start(&simulator->timers, until, cpu->id, process->task.slot);
    block(simulator, cpu, WAIT_TIMER, BLOCK_SLEEP);
}

/* Returns the time (ns) of the tick that is `ticks` ticks ahead. */
static uint64_t tick_after(const struct simulator *simulator, uint64_t ticks)
{
    uint64_t tick_ns = simulator->scheduler.tick_ns;
    uint64_t most = TIME_MAX / tick_ns;
    ticks += simulator->now / tick_ns;
    return (ticks < most ? ticks : most) * tick_ns;
}

/* Returns the next expiry of a timer whose last expiry was at `*due`. A late timer restarts from
 * now, unless it is `absolute`. */
static uint64_t timer_next(const struct simulator *simulator, uint64_t *due, uint64_t period,
                           bool absolute)
{
    *due = *due + period < TIME_MAX ? *due + period : TIME_MAX;
    if (*due < simulator->now && !absolute)
        *due = simulator->now;
    return *due;
}

static uint64_t *task_timer(struct simulator *simulator, const struct process *process,
                            uint32_t timer)
{
    return &simulator->timer_times[process->task.slot * simulator->timer_count + timer];
}

static uint64_t task_timer_next(struct simulator *simulator, const struct process *process,
                                const struct workload_step *step)
{
    uint64_t *due = task_timer(simulator, process, step->detail);
    return timer_next(simulator, due, step->value, step->target == 1);
}

static uint64_t shared_timer_next(struct simulator *simulator, const struct process *process,
                                  const struct workload_step *step)
{
    uint64_t *due = &simulator->shared_times[step->target];
    uint32_t count = simulator->timer_count;
    if (*due == NEVER)
        *due = simulator->timer_times[process->task.slot * count + count - 1];
    return timer_next(simulator, due, step->value, step->detail == 1);
}

/* Lets the policy choose among the waiting processes that follow `after` in the list. Returns the
 * predecessor of the chosen process, or no slot if the first process is chosen. */
static uint32_t before_chosen(struct simulator *simulator, struct run_queue *queue,
                              const struct channel *channel, uint32_t after)
{
    uint32_t before = after;
    uint32_t last = after;
    task_t *chosen = NULL;
    uint32_t slot = after == NOBODY ? channel->first : process_at(simulator, after)->link;
    for (; slot != NOBODY; slot = process_at(simulator, slot)->link) {
        task_t *waiter = &process_at(simulator, slot)->task;
        task_t *now = run_queue_choose_waiter(policy, queue, chosen, waiter);
        if (now != chosen)
            before = last;
        chosen = now;
        last = slot;
    }
    return before;
}

static uint32_t *link_behind(struct simulator *simulator, struct channel *channel, uint32_t slot)
{
    return slot == NOBODY ? &channel->first : &process_at(simulator, slot)->link;
}

/* Moves `count` processes, which the policy chooses, to the front of the channel's list, like
 * order_takers() of kernel/sync/channel.c. */
static void order_waiters(struct simulator *simulator, uint32_t acting_cpu, struct channel *channel,
                          uint64_t count)
{
    struct run_queue *queue = queue_of(simulator, acting_cpu == OUTSIDE ? 0 : acting_cpu);
    uint32_t ordered = NOBODY;
    for (; count > 0; count--) {
        uint32_t before = before_chosen(simulator, queue, channel, ordered);
        uint32_t *from = link_behind(simulator, channel, before);
        uint32_t *to = link_behind(simulator, channel, ordered);
        uint32_t slot = *from;
        struct process *process = process_at(simulator, slot);
        if (channel->last == slot && before != ordered)
            channel->last = before;
        *from = process->link;
        process->link = *to;
        *to = slot;
        ordered = slot;
    }
    hooks_called(simulator, acting_cpu, queue);
}

/* Gives items to waiting processes in order, before other processes can take them. Returns the
 * number of remaining items. */
static uint64_t give_waiting(struct simulator *simulator, uint32_t acting_cpu,
                             struct channel *channel, uint64_t count, const struct process *actor)
{
    while (channel->first != NOBODY && count > 0) {
        struct process *process = process_at(simulator, channel->first);
        channel->first = process->link;
        channel->waiting--;
        count--;
        make_runnable(simulator, acting_cpu, process, ENQUEUE_WOKEN, actor);
    }
    return count;
}

/* Gives `count` items. A count of 0 gives one item to each waiting process. With a count of 0, or
 * without `keeps`, items that no process waits for are lost. */
static void give(struct simulator *simulator, uint32_t acting_cpu, struct channel *channel,
                 uint64_t count, bool keeps, struct process *actor)
{
    if (orders_waiters(simulator) && count > 0 && count < channel->waiting)
        order_waiters(simulator, acting_cpu, channel, count);
    struct process *heir = channel->first == NOBODY ? NULL : process_at(simulator, channel->first);
    if (channel->is_lock)
        hand_lock(simulator, acting_cpu, channel, heir);
    else
        set_owner(simulator, acting_cpu, channel, actor);
    uint64_t left = give_waiting(simulator, acting_cpu, channel, count ? count : UINT64_MAX, actor);
    channel->count += count && keeps ? left : 0;
}

static void wait_in_line(struct simulator *simulator, struct cpu *cpu, struct channel *channel)
{
    struct process *process = cpu->current;
    process->link = NOBODY;
    if (channel->first == NOBODY)
        channel->first = process->task.slot;
    else
        process_at(simulator, channel->last)->link = process->task.slot;
    channel->last = process->task.slot;
    channel->waiting++;
    name_owner(simulator, cpu->id, process, owner_of(simulator, channel));
    block(simulator, cpu, WAIT_CHANNEL, BLOCK_PIPE);
}

static void act_take(struct simulator *simulator, struct cpu *cpu, const struct workload_step *step)
{
    struct process *process = cpu->current;
    struct channel *channel = &simulator->channels[step->target];
    if (step->value > 0)
        give(simulator, cpu->id, &simulator->channels[step->value - 1], 1, true, process);
    if (step->detail >= TAKE_LOCK)
        channel->is_lock = true;
    if (step->detail >= TAKE_CEILING)
        channel->ceiling = (uint8_t)(step->detail - TAKE_CEILING + 1);
    if (channel->count > 0) {
        if (--channel->count == 0 && channel->is_lock)
            hand_lock(simulator, cpu->id, channel, process);
        advance(simulator, process);
        return;
    }
    wait_in_line(simulator, cpu, channel);
}

static void act_meet(struct simulator *simulator, struct cpu *cpu, const struct workload_step *step)
{
    struct channel *channel = &simulator->channels[step->target];
    if (channel->waiting + 1 < step->value) {
        wait_in_line(simulator, cpu, channel);
        return;
    }
    advance(simulator, cpu->current);
    give_waiting(simulator, cpu->id, channel, UINT64_MAX,
                 cpu->current); /* a process does not become an owner by giving */
}

static void act_give(struct simulator *simulator, struct cpu *cpu, const struct workload_step *step)
{
    struct channel *channel = &simulator->channels[step->target];
    struct process *process = cpu->current;
    advance(simulator, process);
    give(simulator, cpu->id, channel, step->value, step->detail != GIVE_WAITING, process);
}

#endif
