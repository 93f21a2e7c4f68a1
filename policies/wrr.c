/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Weighted round-robin: a task's turn lasts for its weight times the quantum. Every operation is
 * O(1).
 *
 * By default, slices are exact in the long run, by time really used. Only ticks end turns, so a
 * turn ends at the tick nearest to its planned end. The error is at most half a tick: for a task
 * picked within a tick, or a slice of a fractional number of ticks. The difference is carried to
 * its next turn, as in deficit round-robin (Shreedhar and Varghese 1995). A task that blocks or
 * yields loses the rest of its turn, but keeps a debt.
 *
 * Deficit round-robin is O(1) only if a quantum buys at least the smallest unit, here a tick. So a
 * quantum shorter than a tick counts as a tick, for all weights alike, which preserves the shares.
 *
 * `shares`: nice levels replace weights, alone or within groups, which share by their weights
 * (group_shares.h). Their range is wide. So a turn is a task's part of a fixed sum of turns, with a
 * mean of the default weight. A task whose turn would be shorter than half a tick saves it, and
 * others go first, until the sum is worth a turn.
 *
 * On several CPUs tasks change places so that each has its share of the whole machine
 * (fair_shares.h).
 *
 * `near`: on a machine with several memory nodes, a task that wakes goes to the nearest idle CPU. A
 * CPU that has work takes none from another node, so shares are fair only within each node.
 *
 * Preset `linux` (study 5): the study keeps all tasks of a CPU in a list and a pointer to the task
 * that was last picked. The next in the list is picked next, and gets its slice at the pick,
 * regardless of what it used before. New and woken tasks enter at the front of the list: they wait
 * until the pointer wraps around, and then the newest is first. Three things differ. The study's
 * pointer is shared by all CPUs, and becomes invalid when its task leaves the list; here each queue
 * has a pointer, which moves to the next task. The study's listing never ends a turn when the slice
 * ends (the number is only displayed, and Linux's rule for fair tasks decides); here turns end as
 * its text says. And Linux moves the picked task to the front of that list, so that the next task
 * of the list would be the task that ran before; here the picked task keeps its place.
 */

#include "fair_shares.h"
#include "group_shares.h"
#include "near_placement.h"
#include "placement.h"
#include "policy.h"
#include "task_list.h"

#include "policies/linux_commands.h"

enum { WRR_QUANTUM, WRR_CARRY, WRR_FRONT, WRR_HORIZON, WRR_SHARES, WRR_NEAR };

static const struct tunable wrr_tunables[] = {
    [WRR_QUANTUM] = {"quantum_us",
                     "microseconds of a turn for each unit of weight, at least a tick", 1, 10000,
                     10000000},
    [WRR_CARRY] = {"carry", "1: the error of a turn's length is corrected in the next turn", 0, 1,
                   1},
    [WRR_FRONT] =
        {"front",
         "1: a new or woken task enters at the front of the list, after the rotating pointer", 0, 0,
         1},
    [WRR_HORIZON] = {"horizon", "ticks that the balance of shares looks ahead", 1, 64, 10000},
    [WRR_SHARES] =
        {"shares", "turns follow: 0 weights, 1 nice levels, 2 groups and, within them, nice levels",
         0, 0, 2},
    [WRR_NEAR] = {"near", "1: tasks leave their memory node only for an idle CPU", 0, 0, 1},
};

static const struct preset wrr_presets[] = {
    {"linux",
     "a pointer cycles through the list of tasks; slices are set at the pick (study 5)",
     {{"carry", 0}, {"front", 1}}},
};

struct wrr_task {
    struct share_member member;
    uint64_t charged_run_time; /* run time that is already charged; ns */
    int64_t left;              /* of its turn, ns; between turns: owed to it, or by it if
                                * negative */
    struct group_member group; /* of shares by groups */
    bool in_turn;              /* it has its slice, and resumes it */
};

struct wrr_queue {
    struct share_queue shares;
    struct task_list tasks;
    task_t *next;               /* the task of the next turn; null: the first */
    uint64_t total[GROUPS_MAX]; /* of shares by groups: see group_survey() */
};

_Static_assert(sizeof(struct wrr_task) <= POLICY_TASK_BYTES, "task state fits");
_Static_assert(sizeof(struct wrr_queue) <= POLICY_QUEUE_BYTES, "queue state fits");
_Static_assert(sizeof(struct group_sums) <= POLICY_SCHEDULER_BYTES, "scheduler state fits");

typedef struct wrr_task SHARED_MEMORY wrr_task_t;
typedef struct wrr_queue SHARED_MEMORY wrr_queue_t;

POLICY_FUNCTION wrr_task_t *wrr_task_of(const task_t *task)
{
    return STATE_OF(task, struct wrr_task);
}

POLICY_FUNCTION wrr_queue_t *wrr_queue_of(const run_queue_t *queue)
{
    return STATE_OF(queue, struct wrr_queue);
}

#define WRR_BY_NICE   1
#define WRR_BY_GROUPS 2
#define WRR_PARTS     1024 /* of a mean turn */
#define WRR_SAVERS    256  /* the most that one pick skips */

POLICY_INLINE bool wrr_divides(const scheduler_t *scheduler)
{
    return scheduler->tunable[WRR_SHARES] != 0;
}

/* In nanoseconds. If a task's turn is a part of a sum of turns, this is the mean. */
POLICY_FUNCTION uint64_t wrr_slice(const scheduler_t *scheduler, const task_t *task)
{
    uint64_t quantum = (uint64_t)scheduler->tunable[WRR_QUANTUM] * 1000;
    return (wrr_divides(scheduler) ? WEIGHT_DEFAULT : task->weight) *
           (quantum > scheduler->tick_ns ? quantum : scheduler->tick_ns);
}

/* Returns the task's weight among others. */
POLICY_FUNCTION uint64_t wrr_weight(run_queue_t *queue, task_t *task)
{
    const scheduler_t *scheduler = queue->scheduler;
    group_member_t *member = &wrr_task_of(task)->group;
    if (!wrr_divides(scheduler))
        return task->weight;
    uint64_t base = nice_weight(task->nice) * NICE_UNIT;
    if (scheduler->tunable[WRR_SHARES] == WRR_BY_NICE)
        return base;
    group_join(scheduler, member, task, base);
    group_survey(scheduler, wrr_queue_of(queue)->total);
    return group_value(scheduler, member, wrr_queue_of(queue)->total);
}

/* Removes the task, which competes here. */
POLICY_FUNCTION void wrr_leave(run_queue_t *queue, task_t *task)
{
    wrr_task_t *state = wrr_task_of(task);
    shares_leave(queue, &state->member);
    if (state->group.active > 0)
        group_leave(queue->scheduler, &state->group);
}

/* Returns the turn of a task that competes here, by its weight relative to the others; ns. */
POLICY_INLINE int64_t wrr_part(run_queue_t *queue, task_t *task)
{
    const share_queue_t *all = SHARES(queue);
    share_member_t *member = &wrr_task_of(task)->member;
    shares_set_weight(queue, member, wrr_weight(queue, task));
    uint64_t parts = member->weight * all->members * WRR_PARTS / all->weight;
    return (int64_t)(parts * (wrr_slice(queue->scheduler, task) / WRR_PARTS));
}

/* A hook. */
POLICY_FUNCTION void wrr_scheduler_init(scheduler_t *scheduler)
{
    group_sums_of(scheduler)->unit = NICE_GROUP_UNIT;
}

POLICY_FUNCTION void wrr_task_init(scheduler_t *scheduler, task_t *task, const task_t *parent)
{
    (void)scheduler, (void)parent;
    wrr_task_of(task)->charged_run_time = task->run_time;
}

/*
 * With the pointer, a task that ran returns to its place, which is before the next one. Tasks that
 * another policy handed over are in order already.
 */
POLICY_FUNCTION task_t *wrr_place_in_list(const run_queue_t *queue, enum enqueue_reason reason)
{
    const wrr_queue_t *state = wrr_queue_of(queue);
    bool front = queue->scheduler->tunable[WRR_FRONT] != 0;
    switch (reason) {
    case ENQUEUE_PREEMPTED:
        return front ? state->next : state->tasks.first;
    case ENQUEUE_EXPIRED:
    case ENQUEUE_YIELDED:
        return front ? state->next : NULL;
    case ENQUEUE_NEW:
    case ENQUEUE_WOKEN:
    case ENQUEUE_MOVED:
        return front ? state->tasks.first : NULL;
    default:
        return NULL;
    }
}

POLICY_FUNCTION void wrr_end_turn(wrr_task_t *state, enum enqueue_reason reason)
{
    if (state->in_turn && state->left > 0 && reason != ENQUEUE_EXPIRED)
        state->left = 0;
    state->in_turn = false;
}

POLICY_FUNCTION void wrr_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    wrr_queue_t *state = wrr_queue_of(queue);
    task_list_insert_before(&state->tasks, task, wrr_place_in_list(queue, reason));
    shares_set_weight(queue, &wrr_task_of(task)->member, wrr_weight(queue, task));
    if (reason != ENQUEUE_PREEMPTED)
        wrr_end_turn(wrr_task_of(task), reason);
    else if (queue->scheduler->tunable[WRR_FRONT])
        state->next = task;
}

POLICY_FUNCTION void wrr_dequeue(run_queue_t *queue, task_t *task)
{
    wrr_queue_t *state = wrr_queue_of(queue);
    if (state->next == task)
        state->next = task->next;
    task_list_remove(&state->tasks, task);
    wrr_leave(queue, task);
}

/* Returns the task of the next turn, or null if none waits. */
POLICY_FUNCTION task_t *wrr_next(const run_queue_t *queue)
{
    const wrr_queue_t *state = wrr_queue_of(queue);
    return state->next ? state->next : state->tasks.first;
}

POLICY_FUNCTION task_t *wrr_steal(run_queue_t *queue, uint32_t cpu)
{
    task_t *task = wrr_next(queue);
    if (task && !task_may_run_on(task, cpu))
        task = task_list_first_on(&wrr_queue_of(queue)->tasks, cpu);
    int64_t horizon = queue->scheduler->tunable[WRR_HORIZON];
    if (!task || !shares_move_pays(queue, &wrr_task_of(task)->member, cpu, horizon))
        return NULL;
    wrr_dequeue(queue, task);
    return task;
}

/* The next task saves its turn; the task after it is next. */
POLICY_FUNCTION void wrr_pass_over(run_queue_t *queue, task_t *task)
{
    wrr_queue_t *state = wrr_queue_of(queue);
    if (queue->scheduler->tunable[WRR_FRONT]) {
        state->next = task->next;
        return;
    }
    task_list_remove(&state->tasks, task);
    task_list_insert_before(&state->tasks, task, NULL);
}

/* Where turns are parts of a sum: starts or resumes the first task whose turn is worth a tick. */
POLICY_RARE_FUNCTION task_t *wrr_first_worth(run_queue_t *queue)
{
    task_t *task = wrr_next(queue);
    for (uint32_t i = (uint32_t)LOOP_START(0); task && i < WRR_SAVERS && LOOP_GUARD; i++) {
        wrr_task_t *state = wrr_task_of(task);
        if (state->in_turn)
            break;
        state->left += wrr_part(queue, task);
        state->in_turn = state->left >= (int64_t)(queue->scheduler->tick_ns / 2);
        if (state->in_turn)
            break;
        wrr_pass_over(queue, task);
        task = wrr_next(queue);
    }
    return task;
}

POLICY_FUNCTION task_t *wrr_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu;
    task_t *task = wrr_divides(queue->scheduler) ? wrr_first_worth(queue) : wrr_next(queue);
    if (!task)
        return NULL;
    wrr_queue_of(queue)->next = queue->scheduler->tunable[WRR_FRONT] ? task->next : NULL;
    task_list_remove(&wrr_queue_of(queue)->tasks, task);
    wrr_task_t *state = wrr_task_of(task);
    if (!state->in_turn && !wrr_divides(queue->scheduler)) {
        int64_t carried = queue->scheduler->tunable[WRR_CARRY] ? state->left : 0;
        state->left = carried + (int64_t)wrr_slice(queue->scheduler, task);
    }
    state->in_turn = true;
    return task;
}

POLICY_FUNCTION void wrr_charge(task_t *task)
{
    wrr_task_t *state = wrr_task_of(task);
    state->left -= (int64_t)(task->run_time - state->charged_run_time);
    state->charged_run_time = task->run_time;
}

POLICY_FUNCTION enum tick_verdict wrr_tick(run_queue_t *queue, task_t *task)
{
    wrr_charge(task);
    shares_tick(queue);
    bool over = wrr_task_of(task)->left <= (int64_t)(queue->scheduler->tick_ns / 2);
    return over ? TICK_PREEMPT : TICK_CONTINUE;
}

POLICY_FUNCTION void wrr_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    wrr_charge(task);
    if (reason != STOP_RUNNABLE)
        wrr_leave(queue, task);
}

POLICY_FUNCTION uint32_t wrr_balance(const scheduler_t *scheduler, uint32_t cpu, bool idle)
{
    if (idle)
        return balance_longest(scheduler, cpu, idle);
    uint32_t other = shares_next_cpu(scheduler, cpu);
    bool far = other != NO_CPU && node_of(scheduler, cpu) != node_of(scheduler, other);
    return far && scheduler->tunable[WRR_NEAR] ? NO_CPU : other;
}

POLICY_FUNCTION uint32_t wrr_place(const scheduler_t *scheduler, const task_t *task,
                                   enum enqueue_reason reason)
{
    if (!scheduler->tunable[WRR_NEAR] || reason != ENQUEUE_WOKEN)
        return shares_place(scheduler, task, reason);
    uint32_t cpu = place_near(scheduler, task);
    return queue_load(scheduler->queue[cpu]) > 0 ? home_cpu_of(scheduler, task) : cpu;
}

POLICY_FUNCTION uint64_t wrr_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    return (wrr_slice(scheduler, task) + scheduler->tick_ns / 2) / scheduler->tick_ns;
}

POLICY_FUNCTION enum share_attribute wrr_shares_by(const scheduler_t *scheduler)
{
    switch (scheduler->tunable[WRR_SHARES]) {
    case WRR_BY_NICE:
        return SHARES_BY_NICE;
    case WRR_BY_GROUPS:
        return SHARES_BY_GROUPS;
    default:
        return SHARES_BY_WEIGHT;
    }
}

POLICY_DEFINITION policy_wrr = {
    .name = "wrr",
    .meaning = "weighted round-robin: a task's turn lasts for its weight times the quantum",
    .source = "Katevenis, Sidiropoulos and Courcoubetis 1991; Shreedhar and Varghese 1995",
    .order = "The task that came first is next; its weight says how long its turn is.",
    .remark = "next in turn",
    .cost = COST_CONSTANT,
    .reads = "weight:shares=0 nice:shares=1 nice:shares=2 taskgroup:shares=2",
    .tunables = wrr_tunables,
    .tunable_count = sizeof(wrr_tunables) / sizeof(wrr_tunables[0]),
    .presets = wrr_presets,
    .by_number = "linux",
    .preset_count = sizeof(wrr_presets) / sizeof(wrr_presets[0]),
    .commands = &linux_commands,
    .by_groups = GROUPS_BY_TUNABLE,
    .rounds = 4,
    .task_bytes = sizeof(struct wrr_task),
    .enqueue = wrr_enqueue,
    .dequeue = wrr_dequeue,
    .pick = wrr_pick,
    .tick = wrr_tick,
    .time_slice = wrr_time_slice,
    .scheduler_init = wrr_scheduler_init,
    .task_init = wrr_task_init,
    .stopped = wrr_stopped,
    .place = wrr_place,
    .balance = wrr_balance,
    .steal = wrr_steal,
    .shares_by = wrr_shares_by,
};
