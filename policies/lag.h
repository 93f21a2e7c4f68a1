/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_LAG_H
#define SCHEDLAB_LAG_H

#include "load_cpus.h"
#include "nice_weights.h"
#include "policy.h"

/*
 * Virtual time and lag (Stoica and Abdel-Wahab 1995), for policies that share a CPU by weights.
 *
 * A member's virtual time advances by its CPU use divided by its weight; at the default weight one
 * nanosecond is one unit. The clock of a queue is the weighted mean of its members' virtual times:
 * the value for each if all ran at once, each at its share. So a member's lag, its weight times the
 * clock's lead over it, is the service owed to it. A negative lag is service that came too early.
 * The lags of all members sum to 0.
 *
 * The clock is maintained without visiting the members: `rest` is the sum of weight × (virtual time
 * − clock), and the clock advances by the whole part of rest ÷ load. So `rest` is always at least 0
 * and less than the load. A member's lag is at least 0 if its virtual time is not after the clock.
 *
 * A member that leaves keeps its lag in nanoseconds of service, and rejoins with the same lag,
 * regardless of its weight and the queue by then. A policy's queue state begins with a lag_queue.
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
    uint64_t charged;   /* run_time that is already charged */
    uint64_t remainder; /* of the division by its weight */
    int64_t lag;        /* while it is in no queue */
};

typedef struct lag_queue SHARED_MEMORY lag_queue_t;
typedef struct lag_member SHARED_MEMORY lag_member_t;

#define LAG_QUEUE(queue) STATE_OF(queue, struct lag_queue)

/* Returns the virtual time that a weight needs to get this many nanoseconds of service;
 * lag_service() is the inverse. */
POLICY_FUNCTION int64_t lag_virtual(int64_t ns, uint64_t weight)
{
    return ns * NICE_WEIGHT_USUAL / (int64_t)weight;
}

POLICY_FUNCTION int64_t lag_service(int64_t time, uint64_t weight)
{
    return time * (int64_t)weight / NICE_WEIGHT_USUAL;
}

/* Returns the clock's lead over the member. */
POLICY_FUNCTION int64_t lag_behind(const run_queue_t *queue, const lag_member_t *member)
{
    return (int64_t)(LAG_QUEUE(queue)->clock - member->time);
}

/* Returns true if the member's lag is at least 0. Then it is eligible: it may go first. */
POLICY_FUNCTION bool lag_eligible(const run_queue_t *queue, const lag_member_t *member)
{
    return lag_behind(queue, member) >= 0;
}

/* Adds to load and rest, and updates the clock. */
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

/* Adds the member, which is in no queue. Joining moves the clock towards the member, so it joins
 * farther away, by the distance that preserves its lag. Alone in a queue, it is owed nothing. */
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

/* Removes the member; it keeps a lag of at most `limit` ns, positive or negative. */
POLICY_FUNCTION void lag_leave(run_queue_t *queue, lag_member_t *member, int64_t limit)
{
    int64_t behind = lag_behind(queue, member);
    int64_t lag = lag_service(behind, member->weight);
    lag = lag < limit ? lag : limit;
    member->lag = lag > -limit ? lag : -limit;
    lag_add(queue, -(int64_t)member->weight, behind * (int64_t)member->weight);
    member->weight = 0;
}

/* Charges the member for its CPU use; `run_time` is its total. */
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
