/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_LAG_H
#define SCHEDLAB_LAG_H

#include "load_cpus.h"
#include "nice_weights.h"
#include "policy.h"

/*
 * Virtual time and lag (Stoica and Abdel-Wahab 1995), for policies that share a CPU by weights.
 *
 * A member's virtual time moves on by what it uses of the CPU, divided by its weight; one
 * nanosecond is one at the usual weight. The clock of a queue is the mean of its members' virtual
 * times, by their weights: what each would have had by now if all ran at once, each at its part. So
 * a member's lag, its weight times what the clock is ahead of it, is the service that is owed to
 * it; less than 0: that it has had too early. The lags of all members sum to 0.
 *
 * The clock is kept without a look at the members: `rest` is the sum of weight × (virtual time −
 * clock), and the clock moves on by the whole part of rest ÷ load. So `rest` is always at least 0
 * and less than the load, and a member is owed something, or nothing, if its virtual time is not
 * after the clock.
 *
 * A member that leaves keeps its lag in nanoseconds of service, and joins again with as much,
 * whatever its weight and the queue are then. A policy's queue state begins with a lag_queue.
 */
struct lag_queue {
    struct load_sum sum; /* of the members' weights */
    uint64_t clock;
    int64_t rest;
};

/* Lies in a task's state; zero for a task that is new. */
struct lag_member {
    uint64_t weight;    /* 0: it is in no queue */
    uint64_t time;      /* virtual */
    uint64_t charged;   /* the part of its run_time that it has paid for */
    uint64_t remainder; /* of the division by its weight */
    int64_t lag;        /* while it is in no queue */
};

typedef struct lag_queue SHARED_MEMORY lag_queue_t;
typedef struct lag_member SHARED_MEMORY lag_member_t;

#define LAG_QUEUE(queue) STATE_OF(queue, struct lag_queue)

/* The virtual time in which a weight has so many nanoseconds of service; and the reverse. */
POLICY_FUNCTION int64_t lag_virtual(int64_t ns, uint64_t weight)
{
    return ns * NICE_WEIGHT_USUAL / (int64_t)weight;
}

POLICY_FUNCTION int64_t lag_service(int64_t time, uint64_t weight)
{
    return time * (int64_t)weight / NICE_WEIGHT_USUAL;
}

/* What the clock is ahead of the member. */
POLICY_FUNCTION int64_t lag_behind(const run_queue_t *queue, const lag_member_t *member)
{
    return (int64_t)(LAG_QUEUE(queue)->clock - member->time);
}

/* Is the member owed something, or nothing? Then it is eligible: it may go first. */
POLICY_FUNCTION bool lag_eligible(const run_queue_t *queue, const lag_member_t *member)
{
    return lag_behind(queue, member) >= 0;
}

/* Load and rest become so much more, and the clock follows. */
POLICY_FUNCTION void lag_add(run_queue_t *queue, int64_t weight, int64_t rest)
{
    lag_queue_t *all = LAG_QUEUE(queue);
    all->sum.load += (uint64_t)weight;
    all->rest += rest;
    if (all->sum.load == 0) {
        all->rest = 0;
        return;
    }
    int64_t load = (int64_t)all->sum.load;
    int64_t by = all->rest / load;
    if (all->rest < by * load)
        by--;
    all->clock += (uint64_t)by;
    all->rest -= by * load;
}

/* The member, which is in no queue, joins. Its coming moves the clock towards it: so it comes in
 * farther away, by as much as leaves it its lag. Alone in a queue, it is owed nothing. */
POLICY_FUNCTION void lag_join(run_queue_t *queue, lag_member_t *member, uint64_t weight)
{
    int64_t load = (int64_t)load_of(queue);
    int64_t behind = load > 0 ? lag_virtual(member->lag, weight) : 0;
    if (load > 0)
        behind += behind * (int64_t)weight / load;
    member->weight = weight;
    member->remainder = 0;
    member->time = LAG_QUEUE(queue)->clock - (uint64_t)behind;
    lag_add(queue, (int64_t)weight, -behind * (int64_t)weight);
}

/* The member leaves; it keeps a lag of at most `limit` ns, owed or owing. */
POLICY_FUNCTION void lag_leave(run_queue_t *queue, lag_member_t *member, int64_t limit)
{
    int64_t behind = lag_behind(queue, member);
    int64_t lag = lag_service(behind, member->weight);
    lag = lag < limit ? lag : limit;
    member->lag = lag > -limit ? lag : -limit;
    lag_add(queue, -(int64_t)member->weight, behind * (int64_t)member->weight);
    member->weight = 0;
}

/* The member pays for what it has used of the CPU, which is `run_time` in all. */
POLICY_FUNCTION void lag_charge(run_queue_t *queue, lag_member_t *member, uint64_t run_time)
{
    uint64_t used = run_time - member->charged;
    uint64_t part = used * NICE_WEIGHT_USUAL + member->remainder;
    uint64_t by = part / member->weight;
    if ((int64_t)used <= 0)
        return;
    member->charged = run_time;
    member->remainder = part % member->weight;
    member->time += by;
    lag_add(queue, 0, (int64_t)(by * member->weight));
}

#endif
