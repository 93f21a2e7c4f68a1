/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_FAIR_SHARES_H
#define SCHEDLAB_FAIR_SHARES_H

#include "placement.h"
#include "policy.h"

/*
 * Fair shares over several CPUs, for policies that share one CPU fairly: which task should move to
 * which queue, so that each gets its part of the whole machine.
 *
 * No static assignment of tasks to CPUs is fair if their weights cannot be balanced: with weights
 * 4, 3 and 3 on two CPUs the tasks are entitled to 0.8, 0.6 and 0.6 of a CPU. So tasks must change
 * places from time to time. Which of them gain and which lose is known:
 *
 *   - A CPU with competing tasks of weight S gives 1/S of its time to each unit of
 *     weight, on average; whether by lot or in turns does not matter here.
 *   - Each unit is entitled to 1/T, where T, the target, is the weight that a CPU would
 *     have if all had the same. A task that alone weighs more than the target is entitled
 *     to one CPU; T then covers the other tasks on the other CPUs.
 *   - So on this CPU a unit's *lead* over its entitlement grows by 1/S − 1/T. The queue
 *     keeps the sum of these differences, its clock. A task's lead is its weight times the
 *     clock's advance since the task joined, which costs nothing per task.
 *
 * Let l be the lead of a unit of weight. The sum of l² over all units of all tasks is a measure of
 * unfairness. If the tasks on a CPU have weight S and lead L together, only this part of the
 * measure after h more ticks depends on the placement:
 *
 *                      sum over all CPUs of (2 L h + h²) / S
 *
 * (the terms with T are the same for any division). A task moves if that makes this sum smaller:
 * tasks that are ahead gather on a heavy CPU, and a task that is behind gets a light one. When no
 * task leads, the sum is smallest where all weights are equal. Serving by the gradient of a sum of
 * squares is known from networks (Tassiulas and Ephremides 1992). Queues that pull by a common
 * virtual time are from Li, Baumberger and Hahn (2009), the entitlement of heavy tasks from Chandra
 * et al. (2000).
 *
 * At each tick a CPU considers one task of one other CPU. It takes only the two queues' locks, and
 * reads the totals of all queues.
 *
 * A policy's queue state begins with a share_queue. Weights are at most 2^40 a CPU.
 */
struct share_queue {
    uint64_t weight;  /* of the tasks that are queued or run here */
    uint64_t members; /* their number */
    /* As of the last tick: the target is due_weight ÷ due_cpus. Zero: no tasks share a CPU. */
    uint64_t due_weight;
    uint64_t due_cpus;
    int64_t clock;  /* lead of a unit of weight, accumulated here */
    int64_t lead;   /* of all members: the sum of weight × (clock − their start) */
    uint64_t since; /* until when the clock counts */
    uint64_t ticks;
};
typedef struct share_queue SHARED_MEMORY share_queue_t;

/* Lies in a task's state; zero for a task that is new. */
struct share_member {
    uint64_t weight; /* 0: competes nowhere */
    int64_t start;   /* the clock's value when the task's lead was 0 */
    int64_t lead;    /* kept while it competes nowhere */
};
typedef struct share_member SHARED_MEMORY share_member_t;

#define SHARES(queue) STATE_OF(queue, struct share_queue)

/* Leads are in nanoseconds, times this; so are clocks, for a unit of weight. */
#define SHARES_FRACTION    (1ll << 22)
#define SHARES_TICKS_MAX   1024 /* a larger lead is discarded: it is impossible */
#define SHARES_GAP_TICKS   16   /* between two ticks, at most */
#define SHARES_PASSES_MAX  8
#define SHARES_DRIFT_TICKS 64
#define SHARES_GAIN                                                                                \
    20 /* a move must gain one part in this many, because moving has a                             \
        * cost */

POLICY_FUNCTION int64_t shares_ticks(const run_queue_t *queue, int64_t ticks)
{
    return ticks * (int64_t)queue->scheduler->tick_ns * SHARES_FRACTION;
}

/* Advances the clock, and with it the lead of all members. */
POLICY_FUNCTION void shares_turn_clock(share_queue_t *shares, int64_t by, int64_t limit)
{
    bool too_far = by > 0 ? shares->lead > limit : shares->lead < -limit;
    if (too_far)
        return;
    shares->clock += by;
    shares->lead += (int64_t)shares->weight * by;
}

/* Returns true if the queue's only task is entitled to a whole CPU, where `weight` shares
 * `cpus`. */
POLICY_FUNCTION bool shares_fills_cpu(const share_queue_t *shares, uint64_t cpus, uint64_t weight)
{
    return shares->members == 1 && shares->weight * cpus >= weight;
}

/*
 * Advances the queue's clock to `now`. Must be called before the queue's weight or its entitlement
 * changes. No task is entitled to more than one CPU, and n tasks to no more than n. So a task that
 * has a CPU to itself is owed nothing, regardless of its weight.
 */
POLICY_FUNCTION void shares_advance(run_queue_t *queue)
{
    share_queue_t *shares = SHARES(queue);
    uint64_t elapsed = queue->now - shares->since;
    uint64_t most = SHARES_GAP_TICKS * queue->scheduler->tick_ns;
    shares->since = queue->now;
    if (elapsed == 0 || shares->weight == 0 || shares->due_cpus == 0)
        return;
    uint64_t time = (elapsed < most ? elapsed : most) * SHARES_FRACTION;
    bool no_more = shares->members * shares->due_weight < shares->weight * shares->due_cpus;
    uint64_t due = no_more ? time * shares->members / shares->weight
                           : time * shares->due_cpus / shares->due_weight;
    shares_turn_clock(shares, (int64_t)(time / shares->weight) - (int64_t)due,
                      shares_ticks(queue, SHARES_TICKS_MAX));
}

POLICY_FUNCTION int64_t shares_lead(const run_queue_t *queue, const share_member_t *member)
{
    return (int64_t)member->weight * (SHARES(queue)->clock - member->start);
}

/* Locked. Removes `member`, which competes here; it keeps its lead. */
POLICY_FUNCTION void shares_leave(run_queue_t *queue, share_member_t *member)
{
    share_queue_t *shares = SHARES(queue);
    shares_advance(queue);
    member->lead = shares_lead(queue, member);
    shares->lead -= member->lead;
    shares->weight -= member->weight;
    shares->members--;
    member->weight = 0;
}

POLICY_FUNCTION void shares_join(run_queue_t *queue, share_member_t *member, uint64_t weight)
{
    share_queue_t *shares = SHARES(queue);
    shares_advance(queue);
    int64_t lead = member->lead / (int64_t)weight;
    member->weight = weight;
    member->start = shares->clock - lead;
    shares->weight += weight;
    shares->members++;
    shares->lead += (int64_t)weight * lead;
}

/* Locked. Makes `member` compete here with a weight other than 0. Until now it competed here or
 * nowhere. */
POLICY_FUNCTION void shares_set_weight(run_queue_t *queue, share_member_t *member, uint64_t weight)
{
    if (member->weight == weight)
        return;
    if (member->weight > 0)
        shares_leave(queue, member);
    shares_join(queue, member, weight);
}

/*
 * Updates the entitlements and keeps leads centred. Without centring, tasks that end and slightly
 * stale values would let all leads drift away from 0, where a new task begins. Excluding tasks that
 * fill a CPU raises the entitlement of the others, so that more may fill one; three passes are
 * usually enough.
 */
POLICY_FUNCTION void shares_find_due(run_queue_t *queue)
{
    const scheduler_t *scheduler = queue->scheduler;
    share_queue_t *shares = SHARES(queue);
    uint64_t cpus = LOOP_START(0);
    uint64_t weight = LOOP_START(1); /* initially no task fills a CPU */
    int64_t lead = 0;
    bool settled = false;
    for (uint32_t pass = LOOP_START(0); pass < SHARES_PASSES_MAX && !settled && LOOP_GUARD;
         pass++) {
        uint64_t cpus_left = LOOP_START(0);
        uint64_t weight_left = LOOP_START(0);
        lead = 0;
        for (uint32_t cpu = LOOP_START(0); cpu < scheduler->queues && LOOP_GUARD; cpu++) {
            const share_queue_t *other = SHARES(scheduler->queue[cpu]);
            if (shares_fills_cpu(other, cpus, weight))
                continue;
            cpus_left++;
            weight_left += other->weight;
            lead += other->lead;
        }
        settled = cpus_left == cpus;
        cpus = cpus_left;
        weight = weight_left;
    }
    shares->due_cpus = weight > 0 ? cpus : 0;
    shares->due_weight = weight;
    if (weight > 0 && !shares_fills_cpu(shares, cpus, weight))
        shares_turn_clock(shares, -lead / (int64_t)weight / SHARES_DRIFT_TICKS,
                          shares_ticks(queue, SHARES_TICKS_MAX));
}

/* Locked. At each tick of a CPU that runs a task. */
POLICY_FUNCTION void shares_tick(run_queue_t *queue)
{
    if (queue->scheduler->queues == 1)
        return;
    shares_advance(queue);
    shares_find_due(queue);
    SHARES(queue)->ticks++;
}

/* No lock. Returns the next CPU that `cpu` should consider taking a task from; cycles through
 * all others. */
POLICY_FUNCTION uint32_t shares_next_cpu(const scheduler_t *scheduler, uint32_t cpu)
{
    uint64_t step = SHARES(scheduler->queue[cpu])->ticks % (scheduler->queues - 1);
    uint32_t other = (uint32_t)((cpu + 1 + step) % scheduler->queues);
    return scheduler->queue[other]->queued > 0 ? other : NO_CPU;
}

/* Returns a queue's contribution to the expected unfairness, divided by twice the horizon. */
POLICY_FUNCTION int64_t shares_expected(int64_t lead, uint64_t weight, int64_t half_horizon)
{
    return weight > 0 ? (lead + half_horizon) / (int64_t)weight : 0;
}

/*
 * Locked (`queue`). Returns true if `member`, which is queued here, should move to `cpu`, looking
 * `horizon` ticks ahead. A longer horizon favours evenness in the long run and moves fewer tasks.
 */
POLICY_FUNCTION bool shares_move_pays(run_queue_t *queue, const share_member_t *member,
                                      uint32_t cpu, int64_t horizon)
{
    const share_queue_t *to = SHARES(queue->scheduler->queue[cpu]);
    const share_queue_t *from = SHARES(queue);
    uint64_t to_weight = to->weight;
    int64_t to_lead = to->lead;
    shares_advance(queue);
    if (to_weight == 0)
        return true;
    if (from->members == 1)
        return false;
    int64_t half = shares_ticks(queue, horizon) / 2;
    int64_t lead = shares_lead(queue, member);
    int64_t now =
        shares_expected(from->lead, from->weight, half) + shares_expected(to_lead, to_weight, half);
    int64_t then = shares_expected(from->lead - lead, from->weight - member->weight, half) +
                   shares_expected(to_lead + lead, to_weight + member->weight, half);
    int64_t cost = half / (int64_t)from->weight + half / (int64_t)to_weight;
    return now - then > cost / SHARES_GAIN;
}

/*
 * No lock. Returns the CPU with the least weight: of several, the task's own, else the lowest. A
 * task that wakes stays on its CPU unless another is idle. If each sleeper chose the lightest CPU,
 * sleepers would exceed their shares at the cost of tasks that never sleep.
 */
POLICY_FUNCTION uint32_t shares_place(const scheduler_t *scheduler, const task_t *task,
                                      enum enqueue_reason reason)
{
    uint32_t home = home_cpu_of(scheduler, task);
    uint32_t best = home;
    uint64_t least = SHARES(scheduler->queue[home])->weight;
    for (uint32_t cpu = LOOP_START(0); cpu < scheduler->queues && least > 0 && LOOP_GUARD; cpu++) {
        uint64_t weight = SHARES(scheduler->queue[cpu])->weight;
        if (weight < least && task_may_run_on(task, cpu)) {
            best = cpu;
            least = weight;
        }
    }
    return reason == ENQUEUE_WOKEN && least > 0 ? home : best;
}

#endif
