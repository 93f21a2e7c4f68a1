/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef SCHEDLAB_HSFQ_TREE_H
#define SCHEDLAB_HSFQ_TREE_H

#include "group_limits.h"
#include "load_cpus.h"
#include "nice_weights.h"
#include "policy.h"
#include "task_heap.h"

/*
 * The tree of hsfq.c in each run queue: which groups have members there, the tags of groups and
 * tasks, the quota that a turn takes, and which task is served next.
 *
 * A parent's number is lower than its group's. So sums from the leaves up, and values passed down
 * from the root, each take one loop over all groups in the order of their numbers.
 */

/* Weights have a common unit: 1 of a group counts 1,024 units, 1 of a nice level's 100. */
#define HSFQ_GROUP_UNIT 1024
#define HSFQ_TASK_UNIT  100
#define HSFQ_USUAL      ((uint64_t)NICE_WEIGHT_USUAL * HSFQ_TASK_UNIT)

#define HSFQ_PART_BITS  20    /* precision of a CPU's part of a group */
#define HSFQ_TURN_LEAST 10000 /* ns, regardless of how much quota remains */

struct hsfq_task {
    struct task_heap_node node; /* key: its start tag */
    uint64_t start;
    uint64_t ahead; /* of its group's clock, when it left */
    uint64_t remainder;
    uint64_t charged; /* run_time that is already charged */
    uint64_t weight;  /* while it is a member; 0: of no queue */
    uint64_t load;    /* its part of its CPU's load */
    uint64_t turn_end;
    uint32_t group; /* its group, or its last group */
    uint32_t home;  /* its queue or last queue: 1 more than the CPU */
};

/* A group in one run queue. */
struct hsfq_group {
    struct task_heap tasks; /* its own waiting tasks */
    uint64_t start;
    uint64_t remainder;
    uint64_t clock;        /* of its children */
    uint64_t last;         /* their latest tag: the clock resumes there after the group had none */
    uint64_t until;        /* its tasks are held until then; 0: not held */
    int64_t left;          /* taken from its quota; less than 0: overdrawn */
    uint64_t taken_at;     /* when it was taken */
    uint64_t task_weights; /* weights of the group's direct tasks */
    uint64_t below;        /* the local weights of groups within it */
    uint64_t all;          /* of all its children on all CPUs */
    uint64_t weight;       /* local weight */
    uint32_t members;      /* waiting or running tasks of the group and of groups within it */
    uint32_t queued;       /* its own queued tasks */
    uint32_t parent;       /* constant while it has members */
    uint32_t best;         /* the group within it to be served first; 0: none */
};

struct hsfq_queue {
    struct load_sum sum;
    uint64_t groups; /* in use; 0: none yet */
    struct hsfq_group group[GROUPS_MAX];
};

/* Over all CPUs; changed by atomic operations. */
struct hsfq_scheduler {
    struct group_pool pool[GROUPS_MAX];
    uint64_t task_weights[GROUPS_MAX]; /* the weights of a group's own tasks */
    uint64_t limits;                   /* 0: quotas are ignored */
};

_Static_assert(sizeof(struct hsfq_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct hsfq_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(sizeof(struct hsfq_scheduler) <= POLICY_SCHEDULER_BYTES, "scheduler state fits");

typedef struct hsfq_task SHARED_MEMORY hsfq_task_t;
typedef struct hsfq_group SHARED_MEMORY hsfq_group_t;
typedef struct hsfq_queue SHARED_MEMORY hsfq_queue_t;
typedef struct hsfq_scheduler SHARED_MEMORY hsfq_scheduler_t;

POLICY_INLINE hsfq_task_t *hsfq_task_of(const task_t *task)
{
    return STATE_OF(task, struct hsfq_task);
}

POLICY_INLINE hsfq_group_t *hsfq_group_of(const run_queue_t *queue, uint32_t group)
{
    return &STATE_OF(queue, struct hsfq_queue)->group[group % GROUPS_MAX];
}

POLICY_FUNCTION hsfq_scheduler_t *hsfq_all(const run_queue_t *queue)
{
    return STATE_OF(queue->scheduler, struct hsfq_scheduler);
}

/* Returns the settings that users made for the group. */
POLICY_FUNCTION share_group_t *hsfq_settings(const run_queue_t *queue, uint32_t group)
{
    return &queue->scheduler->group[group % GROUPS_MAX];
}

POLICY_FUNCTION bool hsfq_limited(const run_queue_t *queue, uint32_t group)
{
    return group < queue->scheduler->groups && hsfq_settings(queue, group)->quota > 0 &&
           hsfq_all(queue)->limits && !queue->scheduler->ending;
}

POLICY_INLINE bool hsfq_before(uint64_t tag, uint64_t other)
{
    return (int64_t)(tag - other) < 0;
}

POLICY_INLINE uint64_t hsfq_later(uint64_t tag, uint64_t other)
{
    return hsfq_before(tag, other) ? other : tag;
}

/* ---- members ---- */

/* Adds the groups that users have set since the last call. */
POLICY_FUNCTION void hsfq_know_groups(run_queue_t *queue)
{
    hsfq_queue_t *all = STATE_OF(queue, struct hsfq_queue);
    uint64_t groups = queue->scheduler->groups;
    if (groups > all->groups)
        all->groups = groups;
    if (all->groups == 0)
        all->groups = 1;
}

/* Returns the tag where service resumes after it was interrupted at `start`. */
POLICY_FUNCTION uint64_t hsfq_resume(hsfq_group_t *parent, uint64_t start)
{
    if (parent->members == 0)
        parent->clock = hsfq_later(parent->clock, parent->last);
    return hsfq_later(start, parent->clock);
}

/* Adds the group when it gets its first member here. */
POLICY_FUNCTION void hsfq_wake_group(run_queue_t *queue, uint32_t group)
{
    hsfq_group_t *group_state = hsfq_group_of(queue, group);
    uint32_t parent = hsfq_settings(queue, group)->parent;
    if (parent >= group)
        parent = 0;
    if (parent != group_state->parent)
        group_state->start = hsfq_group_of(queue, parent)->clock;
    group_state->parent = parent;
    group_state->start = hsfq_resume(hsfq_group_of(queue, parent), group_state->start);
    group_state->weight = (uint64_t)hsfq_settings(queue, group)->weight * HSFQ_GROUP_UNIT;
    group_state->remainder = 0;
}

/* Adds a task to the counts of its group and of the groups above, or removes it. */
POLICY_FUNCTION void hsfq_count(run_queue_t *queue, uint32_t group, bool comes)
{
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && LOOP_GUARD; i++) {
        hsfq_group_t *group_state = hsfq_group_of(queue, group);
        if (comes && group > 0 && group_state->members == 0)
            hsfq_wake_group(queue, group);
        group_state->members += comes ? 1 : (uint32_t)-1;
        if (group == 0)
            return;
        group = group_state->parent;
    }
}

/* Returns a task's part of its CPU's load: its part of its group's weight. */
POLICY_FUNCTION uint64_t hsfq_load(const run_queue_t *queue, uint32_t group, uint64_t weight)
{
    for (uint32_t i = (uint32_t)LOOP_START(0); group > 0 && i < GROUPS_MAX && LOOP_GUARD; i++) {
        const hsfq_group_t *group_state = hsfq_group_of(queue, group);
        uint64_t total = (uint64_t)hsfq_settings(queue, group)->weight * HSFQ_GROUP_UNIT;
        weight = group_state->all > weight ? weight * total / group_state->all : total;
        group = group_state->parent;
    }
    return weight > 0 ? weight : 1;
}

POLICY_FUNCTION uint32_t hsfq_group_now(const run_queue_t *queue, const task_t *task)
{
    return task->group < queue->scheduler->groups ? task->group : 0;
}

POLICY_FUNCTION uint64_t hsfq_weight_now(const task_t *task)
{
    return nice_weight(task->nice) * HSFQ_TASK_UNIT;
}

POLICY_FUNCTION void hsfq_join(run_queue_t *queue, task_t *task)
{
    hsfq_task_t *state = hsfq_task_of(task);
    uint32_t group = hsfq_group_now(queue, task);
    hsfq_group_t *group_state = hsfq_group_of(queue, group);
    bool is_back = state->home == queue->cpu + 1 && state->group == group;
    hsfq_know_groups(queue);
    state->start =
        hsfq_resume(group_state, is_back ? state->start : group_state->clock + state->ahead);
    state->group = group;
    state->home = queue->cpu + 1;
    state->weight = hsfq_weight_now(task);
    state->remainder = 0;
    group_state->task_weights += state->weight;
    __sync_fetch_and_add(&hsfq_all(queue)->task_weights[group], state->weight);
    hsfq_count(queue, group, true);
    state->load = hsfq_load(queue, group, state->weight);
    STATE_OF(queue, struct load_sum)->load += state->load;
}

POLICY_FUNCTION void hsfq_part(run_queue_t *queue, task_t *task)
{
    hsfq_task_t *state = hsfq_task_of(task);
    hsfq_group_t *group_state = hsfq_group_of(queue, state->group);
    load_sum_t *sum = STATE_OF(queue, struct load_sum);
    state->ahead =
        hsfq_before(group_state->clock, state->start) ? state->start - group_state->clock : 0;
    group_state->task_weights -= state->weight;
    __sync_fetch_and_add(&hsfq_all(queue)->task_weights[state->group], -state->weight);
    hsfq_count(queue, state->group, false);
    sum->load -= state->load < sum->load ? state->load : sum->load;
    state->weight = 0;
}

/* ---- service ---- */

/* Advances a tag by the used time. */
POLICY_FUNCTION void hsfq_move(uint64_t SHARED_MEMORY *tag, uint64_t SHARED_MEMORY *remainder,
                               uint64_t used, uint64_t weight)
{
    uint64_t part = used * HSFQ_USUAL + *remainder;
    *tag += part / weight;
    *remainder = part % weight;
}

/* Charges the task for its CPU use, and the groups above it. The task runs or has just stopped. */
POLICY_FUNCTION void hsfq_charge(run_queue_t *queue, task_t *task)
{
    hsfq_task_t *state = hsfq_task_of(task);
    uint64_t run_time = run_time_now(queue, task);
    uint64_t used = run_time - state->charged;
    uint64_t tag;
    if (state->weight == 0 || (int64_t)used <= 0)
        return;
    state->charged = run_time;
    hsfq_move(&state->start, &state->remainder, used, state->weight);
    tag = state->start;
    uint32_t group = state->group;
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && LOOP_GUARD; i++) {
        hsfq_group_t *above = hsfq_group_of(queue, group);
        above->last = hsfq_later(above->last, tag);
        above->left -= hsfq_limited(queue, group) ? (int64_t)used : above->left;
        if (group == 0)
            break;
        hsfq_move(&above->start, &above->remainder, used, above->weight > 0 ? above->weight : 1);
        tag = above->start;
        group = above->parent;
    }
}

/* Returns the part of a group's value that belongs to its members on this CPU. */
POLICY_FUNCTION uint64_t hsfq_part_of(const run_queue_t *queue, uint32_t group, uint64_t total)
{
    const hsfq_group_t *group_state = hsfq_group_of(queue, group);
    uint64_t level_weight = group_state->task_weights + group_state->below;
    if (queue->scheduler->queues == 1 || level_weight >= group_state->all)
        return total;
    uint64_t part = (level_weight << HSFQ_PART_BITS) / group_state->all * total >> HSFQ_PART_BITS;
    return part > 0 ? part : 1;
}

/* Takes the time that the task's turn may need from the quotas above it. Returns how long the
 * turn may last. */
POLICY_FUNCTION uint64_t hsfq_take_quota(run_queue_t *queue, uint32_t group, uint64_t ns)
{
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && LOOP_GUARD; i++) {
        hsfq_group_t *group_state = hsfq_group_of(queue, group);
        if (hsfq_limited(queue, group)) {
            const share_group_t *settings = hsfq_settings(queue, group);
            uint64_t rest = period_end(settings, queue->now) - queue->now;
            uint64_t part = hsfq_part_of(queue, group, settings->quota);
            ns = ns < rest ? ns : rest;
            ns = ns < part ? ns : part;
            if (group_state->left < (int64_t)ns)
                group_state->left +=
                    (int64_t)pool_take(settings, &hsfq_all(queue)->pool[group], queue->now,
                                       ns - (uint64_t)group_state->left);
            group_state->taken_at = queue->now;
            ns = group_state->left < (int64_t)ns
                     ? (uint64_t)(group_state->left > 0 ? group_state->left : 0)
                     : ns;
        }
        if (group == 0)
            break;
        group = group_state->parent;
    }
    return ns > HSFQ_TURN_LEAST ? ns : HSFQ_TURN_LEAST;
}

/* Returns the turn's unused time to the quotas. */
POLICY_FUNCTION void hsfq_give_quota(run_queue_t *queue, uint32_t group)
{
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && LOOP_GUARD; i++) {
        hsfq_group_t *group_state = hsfq_group_of(queue, group);
        if (group_state->left > 0) {
            pool_give(hsfq_settings(queue, group), &hsfq_all(queue)->pool[group],
                      group_state->taken_at, (uint64_t)group_state->left);
            group_state->left = 0;
        }
        if (group == 0)
            break;
        group = group_state->parent;
    }
}

/* Advances the clocks above the task to the tags on the path to it. The task is about to be
 * served. */
POLICY_FUNCTION void hsfq_turn_clocks(run_queue_t *queue, const hsfq_task_t *state)
{
    uint64_t tag = state->start;
    uint32_t group = state->group;
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && LOOP_GUARD; i++) {
        hsfq_group_t *above = hsfq_group_of(queue, group);
        above->clock = hsfq_later(above->clock, tag);
        if (group == 0)
            break;
        tag = above->start;
        group = above->parent;
    }
}

/* ---- the tree ---- */

/* Returns the time until which the group's own limit holds it; 0: not held. Overdrawn time is
 * repaid. */
POLICY_FUNCTION uint64_t hsfq_used_up(run_queue_t *queue, uint32_t group)
{
    hsfq_group_t *group_state = hsfq_group_of(queue, group);
    const share_group_t *settings = hsfq_settings(queue, group);
    group_pool_t *pool = &hsfq_all(queue)->pool[group];
    if (group_state->left < 0)
        group_state->left +=
            (int64_t)pool_take(settings, pool, queue->now, (uint64_t)-group_state->left);
    if (group_state->left > 0 ||
        (group_state->left == 0 && pool_rest(settings, pool, queue->now) > 0))
        return 0;
    return period_end(settings, queue->now);
}

/* Finds the groups that are held, from the root down, and counts their tasks. */
POLICY_FUNCTION void hsfq_find_ineligible(run_queue_t *queue)
{
    uint32_t groups = (uint32_t)STATE_OF(queue, struct hsfq_queue)->groups;
    uint64_t alarm = 0;
    uint32_t ineligible = 0;
    for (uint32_t i = (uint32_t)LOOP_START(0); i < groups && LOOP_GUARD; i++) {
        hsfq_group_t *group_state = hsfq_group_of(queue, i);
        uint64_t until = i > 0 ? hsfq_group_of(queue, group_state->parent)->until : 0;
        if (until == 0 && hsfq_limited(queue, i))
            until = hsfq_used_up(queue, i);
        group_state->until = until;
        group_state->best = 0;
        group_state->below = 0;
        if (until == 0 || group_state->queued == 0)
            continue;
        ineligible += group_state->queued;
        alarm = alarm == 0 || until < alarm ? until : alarm;
    }
    queue->held = ineligible;
    queue->alarm = alarm;
}

/* Finds for each group the child that is first, from the leaves up. A group may have had nothing
 * to serve because it, or all its children, were held. Being held earns no credit, as sleep
 * earns none. */
POLICY_FUNCTION void hsfq_find_first(run_queue_t *queue)
{
    uint32_t groups = (uint32_t)STATE_OF(queue, struct hsfq_queue)->groups;
    uint64_t load = hsfq_group_of(queue, 0)->task_weights;
    for (uint32_t i = (uint32_t)LOOP_START(0); i + 1 < groups && LOOP_GUARD; i++) {
        uint32_t group = groups - 1 - i;
        hsfq_group_t *group_state = hsfq_group_of(queue, group);
        hsfq_group_t *parent = hsfq_group_of(queue, group_state->parent);
        bool ready = group_state->until == 0 && (group_state->tasks.first || group_state->best);
        if (group_state->members == 0)
            continue;
        group_state->weight = hsfq_part_of(
            queue, group, (uint64_t)hsfq_settings(queue, group)->weight * HSFQ_GROUP_UNIT);
        parent->below += group_state->weight;
        load += group_state->parent == 0 && group_state->until == 0 ? group_state->weight : 0;
        if (ready)
            group_state->start = hsfq_later(group_state->start, parent->clock);
        if (ready && (parent->best == 0 ||
                      hsfq_before(group_state->start, hsfq_group_of(queue, parent->best)->start)))
            parent->best = group;
    }
    STATE_OF(queue, struct load_sum)->load = load;
}

/* Sums up the weights of each group over several CPUs. */
POLICY_FUNCTION void hsfq_sum_up(run_queue_t *queue)
{
    uint32_t groups = (uint32_t)STATE_OF(queue, struct hsfq_queue)->groups;
    for (uint32_t i = (uint32_t)LOOP_START(0); i < groups && LOOP_GUARD; i++)
        hsfq_group_of(queue, i)->all = hsfq_all(queue)->task_weights[i];
    for (uint32_t i = (uint32_t)LOOP_START(0); i + 1 < groups && LOOP_GUARD; i++) {
        const hsfq_group_t *group_state = hsfq_group_of(queue, groups - 1 - i);
        if (group_state->all > 0)
            hsfq_group_of(queue, hsfq_settings(queue, groups - 1 - i)->parent)->all +=
                (uint64_t)hsfq_settings(queue, groups - 1 - i)->weight * HSFQ_GROUP_UNIT;
    }
}

POLICY_FUNCTION void hsfq_survey(run_queue_t *queue)
{
    hsfq_know_groups(queue);
    if (queue->scheduler->queues > 1)
        hsfq_sum_up(queue);
    hsfq_find_ineligible(queue);
    hsfq_find_first(queue);
}

/* Returns the first task of a group that may run on `cpu`, or null. With `ineligible`, groups that
 * are held count too. */
POLICY_RARE_FUNCTION task_t *hsfq_any_on(const run_queue_t *queue, uint32_t cpu, bool ineligible)
{
    task_t *task = NULL;
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && !task && LOOP_GUARD; i++) {
        const hsfq_group_t *group_state = hsfq_group_of(queue, i);
        if (ineligible || group_state->until == 0)
            task = task_heap_first_on(&group_state->tasks, cpu);
    }
    return task;
}

/* Returns the task with the least tags on the path to it, or null if none may run. */
POLICY_FUNCTION task_t *hsfq_first(const run_queue_t *queue)
{
    uint32_t group = 0;
    task_t *first = NULL;
    for (uint32_t i = (uint32_t)LOOP_START(0); i < GROUPS_MAX && LOOP_GUARD; i++) {
        const hsfq_group_t *group_state = hsfq_group_of(queue, group);
        uint64_t tag = hsfq_group_of(queue, group_state->best)->start;
        first = group_state->until == 0 ? group_state->tasks.first : NULL;
        if (group_state->best == 0 || (first && !hsfq_before(tag, hsfq_task_of(first)->start)))
            break;
        group = group_state->best;
    }
    return first;
}

#endif
