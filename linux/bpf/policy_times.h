/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_POLICY_TIMES_H
#define LINUX_BPF_POLICY_TIMES_H

/* Handles the times that the policy set. Timers call with interrupts on, so these functions turn
 * them off: a tick would want the same lock. */

#include "locked_queues.h"

#define CLOCK_BOOTTIME 7 /* as in clock_ns() */

/* Handles a turn timer. It may be for a turn that has ended since, or for an interrupted thread:
 * that turn ends when the thread runs again. */
static __noinline void turn_timer_fires(uint32_t cpu)
{
    slot_t *slot = host->occupant[cpu % POLICY_CPUS_MAX];
    host->turn_timer[cpu % POLICY_CPUS_MAX] = 0;
    if (!slot || !slot->task.counted)
        return;
    uint32_t verdict = judge(slot, cpu, false);
    if (verdict == TICK_KILL)
        ask_loader(REQUEST_KILL, slot->task.pid);
    if (verdict == TICK_PREEMPT)
        preempt(cpu, PREEMPT_SLICE);
    /* A timer for an ended turn would expire repeatedly until the thread is off its CPU, and
     * Linux would delay all its timers. */
    if (verdict == TICK_CONTINUE)
        start_turn_timer(cpu, slot);
}

/* Calls the policy if its alarm has come. Returns true if another alarm has come already. Starts
 * the expired timer for the next alarm, except for an alarm that the caller handles. */
PROVED bool ring(uint32_t cpu, bool last)
{
    uint64_t errand = 0;
    uint64_t now = clock_ns();
    struct lock *lock = lock_of(cpu);
    if (!lock || bpf_res_spin_lock(&lock->spin)) {
        give_up("was ended: a run queue stays locked");
        return false;
    }
    queue_t *queue = queue_of(cpu);
    begin_hooks(queue, now);
    queue->alarm_timer = 0;
    if (alarm_is_due(queue)) {
        task_t *task = run_queue_alarm(&POLICY, &queue->view);
        errand = task ? announce(queue, slot_of_task(task)) : 0;
    }
    bool again = alarm_is_due(queue) && !last;
    struct wishes wishes;
    take_wishes(queue, &wishes);
    bpf_res_spin_unlock(&lock->spin);
    wishes.alarm = wishes.alarm && !again;
    see_to(queue, &wishes);
    run_errand(errand);
    return again;
}

/* A queue never announces more tasks than it holds. */
static __noinline void alarm_timer_fires(uint32_t cpu)
{
    uint32_t left = unseen(host->queues[cpu % POLICY_CPUS_MAX].view.queued + 1);
    for (; left > 0 && can_loop; left--) {
        if (!ring(cpu, left == 1))
            return;
    }
}

static int timer_fires(void *map, uint32_t *number, struct policy_timer *timer)
{
    USE_ARENA();
    unsigned long flags;
    uint32_t cpu = *number % POLICY_CPUS_MAX;
    bool turn = IS_TURN_TIMER(*number);
    if (!host)
        return 0;
    bpf_local_irq_save(&flags);
    if (turn && POLICY.turn_over)
        turn_timer_fires(cpu);
    else if (!turn && POLICY.alarm)
        alarm_timer_fires(cpu);
    check();
    bpf_local_irq_restore(&flags);
    return 0;
}

/* A policy that comes back has its timers already. */
static __noinline int init_timer(uint32_t number)
{
    struct policy_timer *timer = bpf_map_lookup_elem(&policy_timers, &number);
    if (!timer)
        return -EINVAL;
    int error = (int)bpf_timer_init(&timer->timer, &policy_timers, CLOCK_BOOTTIME);
    if (error && error != -EBUSY)
        return error;
    return (int)bpf_timer_set_callback(&timer->timer, timer_fires);
}

static __noinline int init_timers(void)
{
    uint32_t cpus = unseen(host->scheduler.cpus);
    int error = 0;
    for (uint32_t cpu = unseen(0); cpu < cpus && !error && can_loop; cpu++) {
        error = init_timer(TURN_TIMER(cpu));
        if (!error)
            error = init_timer(ALARM_TIMER(cpu));
    }
    return error;
}

static __noinline void cancel_timers(void)
{
    for (uint32_t number = unseen(0); number < 2 * POLICY_CPUS_MAX && can_loop; number++) {
        uint32_t key = number;
        struct policy_timer *timer = bpf_map_lookup_elem(&policy_timers, &key);
        if (timer)
            bpf_timer_cancel(&timer->timer);
    }
}

#endif
