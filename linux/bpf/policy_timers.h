/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef LINUX_BPF_POLICY_TIMERS_H
#define LINUX_BPF_POLICY_TIMERS_H

/*
 * The times that a policy sets: the end of a turn on each CPU, and the alarm of each queue. Each
 * has a timer of the kernel's, which is started when no lock is held. A timer that expires before
 * the wanted time keeps running. When it expires, the policy's times are checked, and it is started
 * again. So a CPU that switches between threads starts no timer for each. The program of a policy
 * without these two hooks contains none of this.
 */

#include "errands.h"

#define POLICY_USES_TIMES (POLICY.turn_over || POLICY.alarm)

/* A timer's number. */
#define TURN_TIMER(cpu)       ((cpu) % POLICY_CPUS_MAX)
#define ALARM_TIMER(queue)    (POLICY_CPUS_MAX + (queue) % POLICY_CPUS_MAX)
#define IS_TURN_TIMER(number) ((number) < POLICY_CPUS_MAX)

struct policy_timer {
    struct bpf_timer timer;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2 * POLICY_CPUS_MAX);
    __type(key, uint32_t);
    __type(value, struct policy_timer);
} policy_timers SEC(".maps");

/* On this CPU. A program that cannot start a timer ends the policy: no turn would end. */
static __noinline void start_timer(uint32_t number, uint64_t when)
{
    struct policy_timer *timer = bpf_map_lookup_elem(&policy_timers, &number);
    if (!timer || bpf_timer_start(&timer->timer, when, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN) != 0)
        give_up("was ended: no timer can be started");
}

/* The thread runs on this CPU, whose interrupts are off. */
static __always_inline void start_turn_timer(uint32_t cpu, const slot_t *slot)
{
    uint64_t end = slot->turn_end;
    if (!POLICY.turn_over || !end)
        return;
    uint64_t SHARED_MEMORY *started = &host->turn_timer[cpu % POLICY_CPUS_MAX];
    if (*started && *started <= end)
        return;
    *started = end;
    start_timer(TURN_TIMER(cpu), end);
}

/* Records the queue's alarm, if its timer would expire too late. The queue is locked; the caller
 * starts the timer once no lock is held. */
static __always_inline bool note_alarm(queue_t *queue)
{
    if (!POLICY.alarm)
        return false;
    uint64_t alarm = queue->view.alarm;
    if (!alarm || (queue->alarm_timer && queue->alarm_timer <= alarm))
        return false;
    queue->alarm_timer = alarm;
    return true;
}

/* If another CPU has recorded another time since, and started the timer before, it is started
 * again for that time. */
static __noinline void start_alarm_timer(queue_t *queue)
{
    while (can_loop) {
        uint64_t when = *(volatile uint64_t SHARED_MEMORY *)&queue->alarm_timer;
        if (!when)
            return;
        start_timer(ALARM_TIMER(queue->view.cpu), when);
        if (*(volatile uint64_t SHARED_MEMORY *)&queue->alarm_timer == when)
            return;
    }
}

/* Results of hooks that were called with the queue locked; handled once no lock is held. */
struct wishes {
    bool alarm;
    bool has_annotation;
    struct said annotation;
};

static __always_inline void take_wishes(queue_t *queue, struct wishes *wishes)
{
    wishes->alarm = note_alarm(queue);
    wishes->has_annotation = POLICY.speaks && take_annotation(&queue->view, &wishes->annotation);
}

static __always_inline void see_to(queue_t *queue, const struct wishes *wishes)
{
    if (wishes->alarm)
        start_alarm_timer(queue);
    if (POLICY.speaks && wishes->has_annotation)
        trace_annotation(&wishes->annotation);
}

/* After hooks that were called with the queue locked. */
static __always_inline void unlock(struct lock *lock, queue_t *queue)
{
    struct wishes wishes;
    take_wishes(queue, &wishes);
    bpf_res_spin_unlock(&lock->spin);
    see_to(queue, &wishes);
}

#endif
