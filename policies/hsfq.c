/* SPDX-License-Identifier: MIT OR GPL-2.0-only */

/*
 * Hierarchical start-time fair queueing (Goyal, Guo and Vin 1996): groups of tasks and of other
 * groups share a CPU by their weights, level by level.
 *
 * Each group and each task has a start tag: the virtual time when its next service begins. From the
 * root down, the child with the least start tag is chosen, until that is a task. CPU use advances
 * the tag of the task, and of each group above it, by the time divided by the weight. A group's
 * clock is the start tag of its child in service. A child that returns keeps its tag, or takes the
 * clock if that is later: sleep earns no credit. Of two children that both want the CPU, neither
 * ever leads the other by more than a slice of each, measured by weight.
 *
 * A group's weight is on the scale of Linux's cpu.weight; a task's weight is that of its nice
 * value. A task of nice 0 counts as a group of weight 100.
 *
 * Limits. A group may have a quota in each period (group_limits.h); it limits everything below the
 * group. When it is used up, the tasks are held until the next period, even on an idle CPU. A turn
 * ends with the quota and with the period; overdrawn time is repaid next time.
 *
 * Several CPUs. On each CPU, a group's weight is proportional to its tasks there. New tasks go
 * where the load is least, and CPUs are balanced as in cfs.c.
 */

#include "hsfq_tree.h"
#include "load_cpus.h"
#include "policy.h"

enum { HSFQ_SLICE, HSFQ_WAKEUP, HSFQ_LIMITS, HSFQ_EXACT };

static const struct tunable hsfq_tunables[] = {
    [HSFQ_SLICE] = {"slice_us", "microseconds of a turn, for tasks without a slice", 100, 3000,
                    100000},
    [HSFQ_WAKEUP] =
        {"wakeup_us",
         "microseconds, at default weight, that a task runs before a waking task may preempt it", 0,
         1000, 100000},
    [HSFQ_LIMITS] = {"limits",
                     "1: groups are held when their quota is used up; 0: quotas are ignored", 0, 1,
                     1},
    [HSFQ_EXACT] = {"exact", "1: turns end by a timer; 0: at ticks", 0, 1, 1},
};

static const struct preset hsfq_presets[] = {
    {"ticks", "turns end at ticks, as on a kernel without timers for it", {{"exact", 0}}},
    {"unlimited", "only weights count: quotas are ignored", {{"limits", 0}}},
};

#define HSFQ_SLICE_MOST 100000000 /* ns, the longest request of a task */

POLICY_FUNCTION void hsfq_scheduler_init(scheduler_t *scheduler)
{
    STATE_OF(scheduler, struct hsfq_scheduler)->limits = (uint64_t)scheduler->tunable[HSFQ_LIMITS];
}

POLICY_FUNCTION uint64_t hsfq_slice(const scheduler_t *scheduler, const task_t *task)
{
    uint64_t slice = task->slice ? task->slice : (uint64_t)scheduler->tunable[HSFQ_SLICE] * 1000;
    return slice < HSFQ_SLICE_MOST ? slice : HSFQ_SLICE_MOST;
}

POLICY_FUNCTION void hsfq_begin_turn(run_queue_t *queue, task_t *task)
{
    hsfq_task_t *state = hsfq_task_of(task);
    uint64_t ns = hsfq_take_quota(queue, state->group, hsfq_slice(queue->scheduler, task));
    hsfq_turn_clocks(queue, state);
    state->turn_end = queue->now + ns;
    if (queue->scheduler->tunable[HSFQ_EXACT])
        queue->turn_end = state->turn_end;
}

/* ---- arrival and departure of tasks ---- */

/* Advances the tags of the running task to the present. */
POLICY_FUNCTION void hsfq_advance(run_queue_t *queue)
{
    if (queue->current)
        hsfq_charge(queue, queue->current);
}

POLICY_FUNCTION void hsfq_enqueue(run_queue_t *queue, task_t *task, enum enqueue_reason reason)
{
    hsfq_task_t *state = hsfq_task_of(task);
    (void)reason;
    hsfq_advance(queue);
    if (state->weight > 0 &&
        (state->group != hsfq_group_now(queue, task) || state->weight != hsfq_weight_now(task)))
        hsfq_part(queue, task); /* it ran until now */
    if (state->weight == 0)
        hsfq_join(queue, task);
    hsfq_group_t *group_state = hsfq_group_of(queue, state->group);
    task_heap_insert(&group_state->tasks, task, state->start);
    group_state->queued++;
    if (group_state->until == 0)
        return;
    queue->held++;
    if (queue->alarm == 0 || group_state->until < queue->alarm)
        queue->alarm = group_state->until;
}

/* Takes the waiting task out; it stays a member. */
POLICY_FUNCTION void hsfq_take(run_queue_t *queue, task_t *task)
{
    hsfq_group_t *group_state = hsfq_group_of(queue, hsfq_task_of(task)->group);
    task_heap_remove(&group_state->tasks, task);
    group_state->queued--;
    if (group_state->until > 0)
        queue->held--;
}

POLICY_FUNCTION void hsfq_dequeue(run_queue_t *queue, task_t *task)
{
    hsfq_take(queue, task);
    hsfq_part(queue, task);
}

POLICY_FUNCTION void hsfq_stopped(run_queue_t *queue, task_t *task, enum stop_reason reason)
{
    hsfq_charge(queue, task);
    hsfq_give_quota(queue, hsfq_task_of(task)->group);
    if (reason != STOP_RUNNABLE)
        hsfq_part(queue, task);
}

POLICY_FUNCTION task_t *hsfq_pick(run_queue_t *queue, uint32_t cpu)
{
    (void)cpu; /* all tasks that wait here may run here */
    hsfq_survey(queue);
    task_t *task = hsfq_first(queue);
    if (!task)
        return NULL;
    hsfq_take(queue, task);
    hsfq_task_of(task)->charged = task->run_time;
    hsfq_begin_turn(queue, task);
    queue->remark = hsfq_task_of(task)->start;
    return task;
}

/* ---- while a task runs ---- */

/* Returns true if the turn continues. Where only ticks end turns, the tick nearest to the
 * planned end does. */
POLICY_FUNCTION bool hsfq_turn_lasts(const run_queue_t *queue, const hsfq_task_t *state)
{
    const scheduler_t *scheduler = queue->scheduler;
    uint64_t early = scheduler->tunable[HSFQ_EXACT] ? 0 : scheduler->tick_ns / 2;
    return queue->now + early < state->turn_end;
}

/* Ends the turn if another task waits, the quota is used up, or the task's group was not set
 * before. */
POLICY_FUNCTION enum tick_verdict hsfq_turn_over(run_queue_t *queue, task_t *task)
{
    hsfq_task_t *state = hsfq_task_of(task);
    hsfq_charge(queue, task);
    if (hsfq_turn_lasts(queue, state)) {
        if (queue->scheduler->tunable[HSFQ_EXACT])
            queue->turn_end = state->turn_end;
        return TICK_CONTINUE;
    }
    hsfq_give_quota(queue, state->group);
    hsfq_survey(queue);
    if (queue->queued > queue->held || hsfq_group_of(queue, state->group)->until > 0 ||
        state->group != hsfq_group_now(queue, task))
        return TICK_PREEMPT;
    hsfq_begin_turn(queue, task);
    return TICK_CONTINUE;
}

/* Handles periods of groups that may have started. */
POLICY_FUNCTION task_t *hsfq_alarm(run_queue_t *queue)
{
    uint32_t ineligible = queue->held;
    hsfq_advance(queue);
    hsfq_survey(queue);
    return queue->held < ineligible ? hsfq_first(queue) : NULL;
}

/* Compares the tags where the paths down to the two tasks part. */
POLICY_FUNCTION bool hsfq_preempts(run_queue_t *queue, const task_t *task, const task_t *running)
{
    uint32_t group = hsfq_task_of(task)->group;
    uint32_t other = hsfq_task_of(running)->group;
    uint64_t tag = hsfq_task_of(task)->start;
    uint64_t other_tag = hsfq_task_of(running)->start;
    if (hsfq_group_of(queue, group)->until > 0 || hsfq_task_of(running)->weight == 0)
        return false;
    for (uint32_t i = (uint32_t)LOOP_START(0); i < 2 * GROUPS_MAX && LOOP_GUARD; i++) {
        if (group == other)
            break;
        if (group > other) {
            tag = hsfq_group_of(queue, group)->start;
            group = hsfq_group_of(queue, group)->parent;
        } else {
            other_tag = hsfq_group_of(queue, other)->start;
            other = hsfq_group_of(queue, other)->parent;
        }
    }
    return (int64_t)(other_tag - tag) > queue->scheduler->tunable[HSFQ_WAKEUP] * 1000;
}

/* In ticks, for display. */
POLICY_FUNCTION uint64_t hsfq_time_slice(const scheduler_t *scheduler, const task_t *task)
{
    return hsfq_slice(scheduler, task) / scheduler->tick_ns + 1;
}

POLICY_FUNCTION task_t *hsfq_steal(run_queue_t *queue, uint32_t cpu)
{
    if (queue_bars(queue, cpu) && !hsfq_any_on(queue, cpu, true))
        return NULL;
    hsfq_advance(queue);
    hsfq_survey(queue);
    task_t *task = hsfq_first(queue);
    if (task && !task_may_run_on(task, cpu))
        task = hsfq_any_on(queue, cpu, false);
    if (!task)
        return NULL;
    const hsfq_task_t *state = hsfq_task_of(task);
    if (!load_move_evens(queue, hsfq_load(queue, state->group, state->weight), cpu))
        return NULL;
    hsfq_take(queue, task); /* hsfq_dequeue() would be one call too deep for BPF */
    hsfq_part(queue, task);
    return task;
}

POLICY_FUNCTION enum share_attribute hsfq_shares_by(const scheduler_t *scheduler)
{
    (void)scheduler;
    return SHARES_BY_GROUPS;
}

POLICY_DEFINITION policy_hsfq = {
    .name = "hsfq",
    .meaning = "groups within groups share by weight, each within its quota of a period",
    .source = "Goyal, Guo and Vin 1996; Turner, Rao and Rao 2010",
    .order = "From the root down, the group or task that has had the least for its weight is next.",
    .remark = "the least start tag: {}",
    .remark_kind = REMARK_TIME,
    .cost = COST_LOGARITHMIC,
    .by_groups = GROUPS_ALWAYS,
    .reads = "nice slice taskgroup",
    .tunables = hsfq_tunables,
    .tunable_count = sizeof(hsfq_tunables) / sizeof(hsfq_tunables[0]),
    .presets = hsfq_presets,
    .preset_count = sizeof(hsfq_presets) / sizeof(hsfq_presets[0]),
    .rounds = 4,
    .task_bytes = sizeof(struct hsfq_task),
    .enqueue = hsfq_enqueue,
    .dequeue = hsfq_dequeue,
    .pick = hsfq_pick,
    .tick = hsfq_turn_over,
    .time_slice = hsfq_time_slice,
    .scheduler_init = hsfq_scheduler_init,
    .stopped = hsfq_stopped,
    .turn_over = hsfq_turn_over,
    .alarm = hsfq_alarm,
    .preempts = hsfq_preempts,
    .place = load_place,
    .balance = load_balance,
    .steal = hsfq_steal,
    .shares_by = hsfq_shares_by,
};
