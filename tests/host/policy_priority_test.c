/* SPDX-License-Identifier: MIT */

/*
 * Tests priority scheduling: levels, slices, preemption, aging, each proposal and each quirk of
 * study 1, and strictness on several CPUs. PIDs 1 and 2 are exempt from aging; most tests begin
 * with two tasks that block at once.
 */

#include "policy_harness.h"
#include "random.h"

#include "../../policies/priority.c"
#include "../../policies/studies/study-priority.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_priority, &policy_study_priority};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 2;

/* Restarts the policy with a new value of a tunable; no task is queued or runs. */
static void set(struct model *model, const char *name, int64_t value)
{
    uint32_t tunable = model_find_tunable(model, name);
    check(tunable_set(&model->scheduler, model->policy, tunable, value) == POLICY_OK);
    policy_init_scheduler(model->policy, &model->scheduler);
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        struct run_queue *queue = model_queue(model, cpu);
        check(queue->queued == 0 && queue->running == 0);
        memset(queue->state, 0, POLICY_QUEUE_BYTES);
        policy_init_queue(model->policy, queue);
    }
}

static struct model_task *task_of(struct model *model, int32_t pid)
{
    return model->tasks[pid - 1];
}

static struct model_task *fork_at(struct model *model, int32_t priority)
{
    struct model_task parent = {.task = {.priority = priority, .tickets = 1, .weight = 1}};
    return model_fork(model, &parent);
}

/* Makes a machine whose next PID is 3. */
static struct model *machine(const char *policy, uint32_t cpus)
{
    struct model *model = model_new(policy, cpus, 1);
    for (int i = 0; i < 2; i++) {
        model_fork(model, NULL);
        model_block(model, 0);
    }
    model_clear_log(model);
    return model;
}

/* Returns the task's current level. */
static uint32_t level_now(const struct model *model, const struct model_task *task)
{
    const aging_task_t *state = aging_task_of(&task->task);
    if (task->place != MODEL_QUEUED || !state->ages)
        return state->level;
    uint64_t rise = aging_queue_of(&model->queues[task->queue])->raised - state->raised;
    return rise > state->level ? 0 : state->level - (uint32_t)rise;
}

/* ---- inheritance ---- */

/*
 * Makes a machine where a task of priority 0 (PID 4) waits for a task of priority 9 (PID 3), and a
 * task of priority 5 (PID 5) computes.
 */
static struct model *inversion(int64_t inherit)
{
    struct model *model = machine("priority", 1);
    set(model, "aging_interval", 0);
    set(model, "inherit", inherit);
    fork_at(model, 9);
    fork_at(model, 0);
    fork_at(model, 5);
    check(model_running(model, 0) == 4);
    model_block_for(model, 0, task_of(model, 3));
    return model;
}

static void without_inheritance_the_one_between_holds_up_both(void)
{
    struct model *model = inversion(0);
    model_ticks(model, 3);
    check(model_running(model, 0) == 5);
    model_free(model);
}

static void a_task_is_as_urgent_as_those_that_wait_for_it(void)
{
    struct model *model = inversion(1);
    check(model_running(model, 0) == 3 && task_of(model, 3)->task.level == 0);
    model_ticks(model, 3);
    check(model_running(model, 0) == 3);
    model_wake(model, task_of(model, 4)); /* 3 releases what 4 waits for */
    check(model_running(model, 0) == 4);
    model_block(model, 0);
    check(model_running(model, 0) == 5); /* 3 has its old priority */
    model_block(model, 0);
    check(model_running(model, 0) == 3 && task_of(model, 3)->task.level == 9);
    model_free(model);
}

/* 7 waits for 6, which waits for 3; then the priority of 7 rises. */
static void what_is_inherited_goes_on_along_the_chain(void)
{
    struct model *model = inversion(1);
    model_block(model, 0);
    check(model_running(model, 0) == 5);
    fork_at(model, 4);
    model_settle(model);
    check(model_running(model, 0) == 6);
    model_block_for(model, 0, task_of(model, 3));
    check(task_of(model, 3)->task.lent == 1); /* still inherited from 4 */
    model_wake(model, task_of(model, 4));
    model_block(model, 0);
    check(task_of(model, 3)->task.lent == 5 && model_running(model, 0) == 5);
    fork_at(model, 3);
    model_settle(model);
    model_block_for(model, 0, task_of(model, 6));
    check(task_of(model, 6)->task.lent == 4 && task_of(model, 3)->task.lent == 4);
    model_set_attribute(model, task_of(model, 7), MODEL_PRIORITY, 1);
    check(task_of(model, 6)->task.lent == 2 && task_of(model, 3)->task.lent == 2);
    model_wake(model, task_of(model, 7));
    check(task_of(model, 6)->task.lent == 0 && task_of(model, 3)->task.lent == 5);
    model_free(model);
}

static void the_waiters_of_one_that_ends_wait_for_none(void)
{
    struct model *model = inversion(1);
    model_end(model, task_of(model, 3));
    check(!task_of(model, 4)->task.waits_for && model_running(model, 0) == 5);
    model_wake(model, task_of(model, 4));
    check(model_running(model, 0) == 4);
    model_free(model);
}

/* Two tasks wait for each other: updating the priorities must terminate. */
static void a_ring_of_waits_is_told_to_an_end(void)
{
    struct model *model = inversion(1);
    check(model_running(model, 0) == 3);
    model_block_for(model, 0, task_of(model, 4));
    check(task_of(model, 3)->task.lent == 1 && task_of(model, 4)->task.lent == 1);
    check(model_running(model, 0) == 5);
    model_wake(model, task_of(model, 3));
    check(model_running(model, 0) == 3);
    model_free(model);
}

/* Of equally urgent tasks, the first to arrive continues. Inherited priority counts. */
static void the_most_urgent_of_those_that_wait_goes_on(void)
{
    static const uint32_t priorities[] = {4, 2, 7, 2};
    struct model_task *waiters[4];
    struct model *model = machine("priority", 1);
    set(model, "overtake", 1);
    for (uint32_t i = 0; i < 4; i++) {
        waiters[i] = fork_at(model, (int32_t)priorities[i]);
        model_settle(model);
        model_block(model, 0);
    }
    check(model_choose_waiter(model, waiters, 4) == waiters[1]);
    check(model_choose_waiter(model, waiters + 2, 2) == waiters[3]);
    waiters[2]->task.lent = 1; /* more than priority 0 */
    check(model_choose_waiter(model, waiters, 4) == waiters[2]);
    set(model, "overtake", 0);
    check(model_choose_waiter(model, waiters, 4) == waiters[0]);
    model_free(model);
}

/* On another CPU, a running owner is raised without a move, and a queued owner is queued again. */
static void an_owner_is_lifted_wherever_it_is(void)
{
    struct model *model = machine("priority", 2);
    set(model, "aging_interval", 0);
    set(model, "inherit", 1);
    for (int i = 0; i < 2; i++)
        fork_at(model, 6);
    fork_at(model, 9);
    fork_at(model, 2);
    model_settle(model);
    struct model_task *lowly = task_of(model, 5);
    struct model_task *urgent = task_of(model, 6);
    check(lowly->place == MODEL_QUEUED && urgent->place == MODEL_RUNNING);
    model_block_for(model, urgent->task.cpu, lowly);
    check(lowly->place == MODEL_RUNNING && lowly->task.level == 2);
    model_wake(model, urgent);
    check(urgent->place == MODEL_RUNNING);
    model_free(model);
}

/* ---- one CPU ---- */

static void the_highest_runs_until_it_blocks(void)
{
    struct model *model = machine("priority", 1);
    fork_at(model, 9);
    fork_at(model, 3);
    fork_at(model, 6);
    check_picks(model, "3 4");
    check(model->queues[0].remark == 3); /* the trace has the level */
    model_ticks(model, 4);
    check_picks(model, "4 4 4 4");
    model_block(model, 0);
    model_tick(model);
    model_block(model, 0);
    model_tick(model);
    check_picks(model, "5 5 3 3");
    model_free(model);
}

static void equals_take_turns_in_the_order_of_arrival(void)
{
    struct model *model = machine("priority", 1);
    for (int i = 0; i < 3; i++)
        fork_at(model, 4);
    fork_at(model, 5);
    model_ticks(model, 5);
    check_picks(model, "3 4 5 3 4 5");
    model_yield(model, 0);
    model_yield(model, 0);
    check_picks(model, "3 4");
    model_free(model);
}

static void a_slice_lasts_as_many_ticks(void)
{
    struct model *model = machine("priority", 1);
    set(model, "slice", 3);
    for (int i = 0; i < 2; i++)
        fork_at(model, 4);
    check(policy_priority.time_slice(&model->scheduler, &task_of(model, 3)->task) == 3);
    model_ticks(model, 8);
    check_picks(model, "3 4 3");
    model_tick(model);
    check_picks(model, "4");
    model_free(model);
}

static void a_higher_one_that_wakes_or_is_forked_preempts_at_once(void)
{
    struct model *model = machine("priority", 1);
    fork_at(model, 2);
    model_block(model, 0);
    fork_at(model, 6);
    model_clear_log(model);
    model_wake(model, task_of(model, 3));
    check_picks(model, "3");
    fork_at(model, 1);
    check_picks(model, "5");
    fork_at(model, 1); /* equal priority does not preempt */
    check_picks(model, "");
    model_free(model);
}

static void who_was_preempted_goes_on_with_its_turn(void)
{
    struct model *model = machine("priority", 1);
    set(model, "slice", 3);
    fork_at(model, 6);
    fork_at(model, 6);
    model_ticks(model, 2); /* of 3's slice */
    fork_at(model, 1);
    model_block(model, 0); /* 5 */
    check_picks(model, "3 5 3");
    model_tick(model); /* the third tick of 3 */
    model_ticks(model, 3);
    check_picks(model, "4 3");
    model_free(model);
}

static void a_priority_that_changes_counts_at_once(void)
{
    struct model *model = machine("priority", 1);
    for (int i = 0; i < 4; i++)
        fork_at(model, 5);
    check_picks(model, "3");
    model_set_attribute(model, task_of(model, 5), MODEL_PRIORITY, 2); /* it waits */
    check_picks(model, "5");
    check(task_of(model, 5)->task.level == 2);
    model_set_attribute(model, task_of(model, 5), MODEL_PRIORITY, 7); /* it runs */
    check(task_of(model, 5)->task.level == 7);
    check_picks(model, "3");
    model_block(model, 0);
    model_set_attribute(model, task_of(model, 3), MODEL_PRIORITY, 0); /* it is blocked */
    check_picks(model, "4");
    model_wake(model, task_of(model, 3));
    check_picks(model, "3");
    model_block(model, 0);
    model_set_attribute(model, task_of(model, 6), MODEL_PRIORITY, 5); /* no change */
    model_set_attribute(model, task_of(model, 6), MODEL_TICKETS, 50); /* another attribute */
    model_ticks(model, 2);
    check_picks(model, "4 6 4");
    model_free(model);
}

static void a_running_task_keeps_its_turn_when_another_attribute_changes(void)
{
    struct model *model = machine("priority", 1);
    set(model, "slice", 2);
    fork_at(model, 5);
    fork_at(model, 5);
    model_tick(model);
    model_set_attribute(model, task_of(model, 3), MODEL_WEIGHT, 9);
    check_picks(model, "3 3");
    model_tick(model);
    check_picks(model, "4");
    model_free(model);
}

/* ---- aging ---- */

/* The level of a task of priority 10 at every tick, while a task of priority 0 never waits. */
static void who_waits_rises_at_every_multiple_of_the_interval(void)
{
    struct model *model = machine("priority", 1);
    struct model_task *high = fork_at(model, 0);
    model_ticks(model, 30);
    struct model_task *low = fork_at(model, 10);
    for (uint32_t tick = 31; tick < 500; tick++) {
        model_tick(model);
        check(level_now(model, low) == 10 - tick / 50);
        check(high->place == MODEL_RUNNING && level_now(model, high) == 0);
    }
    check(low->task.selections == 0);
    model_ticks(model, 1); /* at level 0, queued before 3's slice ended */
    check(low->place == MODEL_RUNNING && low->task.level == 0);
    model_tick(model);
    check(low->place == MODEL_QUEUED && level_now(model, low) == 10 && low->task.level == 10);
    check(low->task.run_time == MODEL_TICK_NS);
    for (uint32_t tick = 502; tick < 1000; tick++) {
        model_tick(model);
        check(level_now(model, low) == 10 - (tick - 500) / 50);
    }
    model_tick(model);
    check(low->place == MODEL_RUNNING);
    model_free(model);
}

static void the_step_and_the_interval_are_tunable(void)
{
    struct model *model = machine("priority", 1);
    set(model, "aging_interval", 7);
    set(model, "aging_step", 4);
    fork_at(model, 0);
    struct model_task *low = fork_at(model, 9);
    static const uint32_t levels[] = {9, 5, 1};
    for (uint32_t tick = 1; tick < 21; tick++) {
        model_tick(model);
        check(level_now(model, low) == levels[tick / 7]);
    }
    model_tick(model);
    check(low->place == MODEL_RUNNING && low->task.level == 0);
    model_free(model);

    model = machine("priority", 1);
    set(model, "aging_interval", 0);
    fork_at(model, 0);
    low = fork_at(model, 1);
    model_ticks(model, 2000);
    check(low->task.selections == 0 && level_now(model, low) == 1);
    model_free(model);
}

/* A list that rises is queued behind the tasks that are already at its new level. */
static void who_rises_is_behind_who_is_there(void)
{
    struct model *model = machine("priority", 1);
    fork_at(model, 0);
    fork_at(model, 4);
    fork_at(model, 3);
    fork_at(model, 4);
    fork_at(model, 3);
    model_ticks(model, 149); /* all at 2 or 1 */
    model_set_attribute(model, task_of(model, 3), MODEL_PRIORITY, 10);
    model_clear_log(model);
    for (int i = 0; i < 4; i++)
        model_block(model, 0);
    check_picks(model, "7 4 6 3"); /* 5 runs already */
    model_free(model);

    model = machine("priority", 1);
    fork_at(model, 0);
    for (int32_t level = 3; level >= 1; level--)
        fork_at(model, level);
    model_ticks(model, 150); /* all at level 0, in the order of their base levels */
    check(task_of(model, 6)->place == MODEL_RUNNING || task_of(model, 6)->task.selections > 0);
    model_free(model);
}

static void who_was_preempted_keeps_its_raise_for_its_turn(void)
{
    struct model *model = machine("priority", 1);
    set(model, "slice", 4);
    fork_at(model, 6);
    struct model_task *low = fork_at(model, 8);
    while (low->place != MODEL_RUNNING)
        model_tick(model);
    check(model->now >= 100 * MODEL_TICK_NS && model->now < 105 * MODEL_TICK_NS);
    check(low->task.level == 6);
    model_tick(model);
    fork_at(model, 7); /* above its own level, below the raised level */
    check(low->place == MODEL_RUNNING);
    struct model_task *high = fork_at(model, 1);
    check(low->place == MODEL_QUEUED && low->task.level == 6);
    model_end(model, high);
    check(low->place == MODEL_RUNNING);
    model_ticks(model, 3);
    check(low->place == MODEL_QUEUED && low->task.level == 8);
    model_free(model);
}

static void a_permanent_raise_lasts_until_the_priority_changes(void)
{
    struct model *model = machine("priority", 1);
    set(model, "aging_keeps", 1);
    struct model_task *high = fork_at(model, 5);
    struct model_task *low = fork_at(model, 7);
    model_ticks(model, 100);
    check(low->place == MODEL_RUNNING && low->task.level == 5);
    model_tick(model);
    check(low->place == MODEL_QUEUED && level_now(model, low) == 5);
    model_block(model, 0);
    check(low->place == MODEL_RUNNING);
    model_block(model, 0);
    model_wake(model, low);
    check(low->task.level == 5);
    model_set_attribute(model, low, MODEL_PRIORITY, 8);
    check(low->task.level == 8);
    model_wake(model, high);
    model_ticks(model, 50);
    check(level_now(model, low) == 7);
    model_free(model);
}

static void exempt_tasks_never_rise(void)
{
    struct model *model = model_new("priority", 1, 1);
    set(model, "exempt_pids", 2);
    for (int i = 0; i < 2; i++)
        fork_at(model, 9);
    struct model_task *third = fork_at(model, 9);
    fork_at(model, 3);
    model_ticks(model, 2000);
    for (int32_t pid = 1; pid <= 2; pid++)
        check(task_of(model, pid)->task.selections <= 1 &&
              level_now(model, task_of(model, pid)) == 9);
    check(third->task.selections > 2);
    model_free(model);
}

static void exempt_tasks_take_turns_with_the_others(void)
{
    struct model *model = model_new("priority", 1, 1);
    for (int i = 0; i < 5; i++)
        fork_at(model, 4);
    model_ticks(model, 8);
    check_picks(model, "1 2 3 4 5 1 2 3 4");
    model_yield(model, 0);
    model_block(model, 0);
    model_wake(model, task_of(model, 5));
    model_ticks(model, 4);
    check_picks(model, "5 1 2 3 4 5");
    model_free(model);
}

/* ---- proposals ---- */

static void a_stalled_cpu_ages_faster(void)
{
    struct model *model = machine("priority", 1);
    set(model, "stalled_after", 100);
    fork_at(model, 0);
    struct model_task *low = fork_at(model, 10);
    for (uint32_t tick = 1; tick < 300; tick++) {
        model_tick(model);
        uint32_t raises = tick < 125 ? tick / 50 : tick / 25 - 2;
        check(level_now(model, low) == (raises < 10 ? 10 - raises : 0));
    }
    model_ticks(model, 2);
    check(low->task.selections > 0);
    model_free(model);
}

static void a_wait_of_the_limit_itself_is_not_over_it(void)
{
    for (int64_t limit = 74; limit <= 75; limit++) {
        struct model *model = machine("priority", 1);
        set(model, "stalled_after", limit);
        fork_at(model, 0);
        struct model_task *low = fork_at(model, 10);
        model_ticks(model, 75);
        check(level_now(model, low) == (limit == 74 ? 8 : 9));
        model_free(model);
    }
}

static void behaviour_moves_a_task_by_two_levels_at_most(void)
{
    struct model *model = machine("priority", 1);
    set(model, "behaviour", 100);
    struct model_task *hog = fork_at(model, 5);
    static const uint32_t levels[] = {5, 6, 7, 7, 7};
    for (uint32_t tick = 1; tick < 500; tick++) {
        model_tick(model);
        check(hog->task.level == levels[tick / 100]);
    }
    model_set_attribute(model, hog, MODEL_PRIORITY, 4);
    check(hog->task.level == 4);
    model_block(model, 0);

    struct model_task *sleeper = fork_at(model, 5);
    for (uint32_t i = 1; i < 50; i++) {
        model_tick(model);
        model_sleep(model, 0, 9);
        model_ticks(model, 9);
        check(sleeper->task.level == (i < 10 ? 5 : i < 20 ? 4 : 3));
    }
    model_free(model);
}

static void behaviour_keeps_within_the_levels(void)
{
    struct model *model = machine("priority", 1);
    set(model, "behaviour", 10);
    struct model_task *hog = fork_at(model, 10);
    model_ticks(model, 100);
    check(hog->task.level == 10);
    model_block(model, 0);
    struct model_task *sleeper = fork_at(model, 0);
    for (int i = 0; i < 20; i++) {
        model_sleep(model, 0, 9);
        model_ticks(model, 10);
    }
    check(sleeper->task.level == 0);
    model_free(model);
}

static void time_in_the_queue_is_no_sleep(void)
{
    struct model *model = machine("priority", 1);
    set(model, "behaviour", 100);
    struct model_task *first = fork_at(model, 5);
    for (int i = 0; i < 3; i++)
        fork_at(model, 5);
    model_ticks(model, 403);
    check(first->task.level == 6);
    model_free(model);
}

static void levels_can_be_merged(void)
{
    struct model *model = machine("priority", 1);
    static const uint32_t levels[] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3};
    set(model, "level_width", 3);
    for (int32_t priority = 0; priority <= PRIORITY_LOWEST; priority++)
        check(fork_at(model, priority)->task.level == levels[priority]);
    model_ticks(model, 4);
    check_picks(model, "3 4 5 3 4");
    model_ticks(model, 46);
    check(level_now(model, task_of(model, 3 + 10)) == 2);
    model_free(model);
}

/* ---- quirks of study 1 ---- */

static void the_fast_lane_is_served_before_the_highest(void)
{
    struct model *model = machine("priority", 1);
    set(model, "fast_lane", 1);
    fork_at(model, 0);
    fork_at(model, 1);
    fork_at(model, 5);
    fork_at(model, 5);
    model_ticks(model, 3);
    check_picks(model, "3 5 6 5 6");
    model_block(model, 0);
    model_block(model, 0);
    check_picks(model, "5 3");
    model_free(model);
}

/*
 * A task that rises from the fast lane to level 4 runs after the running task, which neither waits
 * nor rises. Aging therefore does not help against the fast lane.
 */
static void who_rises_leaves_the_fast_lane(void)
{
    struct model *model = machine("priority", 1);
    set(model, "fast_lane", 1);
    set(model, "aging_keeps", 1);
    struct model_task *first = fork_at(model, 5);
    struct model_task *second = fork_at(model, 5);
    struct model_task *zero = fork_at(model, 0);
    model_ticks(model, 49);
    check_picks(model,
                "3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 3 4 "
                "3 4 3 4 3 4 3 4 3 4");
    model_tick(model); /* 3 waits and rises */
    check(level_now(model, first) == 4 && second->place == MODEL_RUNNING);
    model_ticks(model, 2000);
    check(level_now(model, first) == 0 && zero->task.selections == 0);
    check(second->place == MODEL_RUNNING && second->task.level == 5);
    model_free(model);
}

static void pids_above_the_limit_have_priority_5(void)
{
    struct model *model = machine("priority", 1);
    set(model, "pid_limit", 4);
    fork_at(model, 6);
    fork_at(model, 4);
    struct model_task *above = fork_at(model, 0);
    check(above->task.level == 5 && task_of(model, 4)->place == MODEL_RUNNING);
    model_set_attribute(model, above, MODEL_PRIORITY, 1);
    check(above->task.level == 5 && above->place == MODEL_QUEUED);
    model_ticks(model, 1000); /* it does not rise either */
    check(level_now(model, above) == 5);
    check(above->task.selections == 0);
    model_free(model);
}

static void a_task_is_ended_after_its_run_time(void)
{
    struct model *model = model_new("priority", 1, 1);
    set(model, "kill_after", 10);
    set(model, "exempt_pids", 0); /* governs aging only */
    for (int i = 0; i < 2; i++) {
        model_fork(model, NULL);
        model_ticks(model, 20);
        model_block(model, 0);
    }
    struct model_task *third = model_fork(model, NULL);
    struct model_task *fourth = model_fork(model, NULL);
    for (int i = 0; i < 2; i++)
        check(task_of(model, i + 1)->place == MODEL_BLOCKED);
    model_ticks(model, 20);
    check(third->place != MODEL_ENDED && fourth->place != MODEL_ENDED);
    check(third->task.run_time == 10 * MODEL_TICK_NS);
    model_tick(model);
    check(third->place == MODEL_ENDED && fourth->place == MODEL_RUNNING);
    model_tick(model);
    check(fourth->place == MODEL_ENDED);
    model_free(model);
}

static void without_preemption_a_higher_one_waits_for_the_tick(void)
{
    struct model *model = machine("priority", 1);
    set(model, "preemption", 0);
    set(model, "slice", 5);
    fork_at(model, 5);
    fork_at(model, 1);
    fork_at(model, 5);
    check_picks(model, "3");
    model_tick(model);
    check_picks(model, "4");
    model_block(model, 0); /* 3 has four ticks left */
    model_ticks(model, 3);
    check_picks(model, "3");
    model_tick(model);
    check_picks(model, "5");
    model_free(model);
}

static void a_new_task_goes_where_the_fewest_wait_and_stays(void)
{
    struct model *model = model_new("priority", 3, 1);
    set(model, "placement", PLACE_FEWEST_WAITING);
    set(model, "balancing", 0);
    fork_at(model, 5); /* no task waits anywhere: running tasks do not count */
    fork_at(model, 5);
    check_picks(model, "0:1");
    check(model->queues[0].queued == 1);
    fork_at(model, 5);
    check_picks(model, "1:3");
    fork_at(model, 5);
    check(model->queues[1].queued == 1);
    fork_at(model, 5);
    check_picks(model, "2:5");
    model_block(model, 2);
    model_block(model, 1);
    model_block(model, 1);
    model_clear_log(model);
    model_ticks(model, 10); /* 1 and 2 share CPU 0, the others are idle */
    check(model->queues[0].queued == 1 && model_running(model, 1) == 0);
    model_wake(model, task_of(model, 3));
    model_wake(model, task_of(model, 5));
    check(model_running(model, 1) == 3 && model_running(model, 2) == 5);
    model_block(model, 0); /* 1 or 2 */
    struct model_task *other = fork_at(model, 5);
    check(other->queue == 0); /* no task waits anywhere */
    model_block(model, 1);
    model_fork(model, task_of(model, 5)); /* its parent's CPU is 2; no task waits on 1 and 2 */
    check(model_running(model, 1) == 7);
    model_wake(model, task_of(model, 3));
    model_block(model, 2);
    model_tick(model);
    check(task_of(model, 3)->task.cpu == 1 && task_of(model, 7)->task.cpu == 1);
    model_free(model);
}

/* Study 1, section 8.3: a CPU that becomes idle takes a task only every 500 ticks. */
static void tasks_move_only_at_the_ticks_of_balancing(void)
{
    struct model *model = model_new("priority:thesis", 2, 1);
    set(model, "balancing", 500);
    model_tick(model); /* tick 0 is one of them */
    for (int i = 0; i < 3; i++)
        fork_at(model, 5);
    while (model_running(model, 1) != 0)
        model_block(model, 1);
    check(model->queues[0].queued > 0);
    uint64_t ticks = 0;
    for (; model_running(model, 1) == 0 && ticks < 1000; ticks++)
        model_tick(model);
    check(ticks > 400 && model->now / MODEL_TICK_NS % 500 == 0);
    model_free(model);
}

static void the_least_weight_is_the_least_sum_of_10_less_the_level(void)
{
    struct model *model = model_new("priority", 2, 1);
    set(model, "placement", PLACE_LEAST_WEIGHT);
    set(model, "balancing", 0);
    fork_at(model, 1); /* 9 to CPU 0 */
    fork_at(model, 6); /* 4 to CPU 1 */
    fork_at(model, 7); /* 3 */
    fork_at(model, 9); /* 1 */
    fork_at(model, 8); /* 2: 10 to 9 */
    check(model->queues[0].queued == 0 && model->queues[1].queued == 3);
    fork_at(model, 10);
    check(model->queues[0].queued == 1);
    model_free(model);
}

static void thesis_has_all_quirks(void)
{
    struct model *model = model_new("priority:thesis", 2, 1);
    fork_at(model, 5);                           /* 1, CPU 0 */
    fork_at(model, 5);                           /* 2, CPU 0: no task waits there yet */
    struct model_task *zero = fork_at(model, 0); /* 3, CPU 1 */
    struct model_task *five = fork_at(model, 5); /* 4, CPU 1: one task waits on CPU 0 */
    check_picks(model, "0:1 1:3");
    model_ticks(model, 3);
    check_picks(model, "0:2 1:4 0:1 1:4 0:2 1:4");
    for (uint32_t tick = 3; tick < 2000; tick++) {
        model_tick(model);
        check(zero->task.selections == 1 && five->task.cpu == 1);
    }
    model_block(model, 1); /* 4 */
    check(zero->place == MODEL_RUNNING);
    model_wake(model, five);
    check(zero->place == MODEL_RUNNING);
    model_tick(model);
    check(five->place == MODEL_RUNNING);

    model_ticks(model, 10000 - 2000 - 1 + 1); /* 4 has run for at least 2000 - 1 ticks */
    model_ticks(model, 4);
    check(five->place == MODEL_ENDED && zero->place == MODEL_RUNNING);
    check(five->task.run_time == 10001 * MODEL_TICK_NS);
    model_ticks(model, 12000);
    check(zero->place == MODEL_ENDED);
    check(task_of(model, 1)->place != MODEL_ENDED && task_of(model, 2)->place != MODEL_ENDED);
    model_free(model);
}

static void thesis_sets_pids_above_100_to_5(void)
{
    struct model *model = model_new("priority:thesis", 1, 1);
    for (int i = 0; i < 100; i++)
        model_end(model, fork_at(model, 3));
    check(fork_at(model, 0)->task.level == 5);
    check(fork_at(model, 10)->task.level == 5);
    model_clear_log(model);
    model_ticks(model, 4);
    check_picks(model, "102 101 102 101");
    model_free(model);
}

/* Each tick of the only CPU is a pass; the running task ages like the waiting one. */
static void passes_age_all(void)
{
    struct model *model = model_new("priority:passes", 1, 1);
    struct model_task *seven = fork_at(model, 7); /* PID 1, which also ages */
    struct model_task *nine = fork_at(model, 9);
    check(seven->place == MODEL_RUNNING);
    model_ticks(model, 48);
    check(seven->task.selections == 49 && nine->task.selections == 0);
    check(level_now(model, seven) == 7 && level_now(model, nine) == 9);
    model_ticks(model, 2); /* the 50th pass; then each list has one task at its new level */
    check(level_now(model, seven) == 6 && level_now(model, nine) == 8);
    model_ticks(model, 8 * 50);
    check(level_now(model, seven) == 0 && nine->task.selections > 0);
    model_free(model);
}

static void passes_of_an_idle_cpu_are_many(void)
{
    struct model *model = model_new("priority:passes", 2, 1);
    struct model_task *first = fork_at(model, 9);
    struct model_task *second = fork_at(model, 9);
    check(first->place == MODEL_RUNNING && second->place == MODEL_QUEUED);
    check(level_now(model, second) == 9);
    model_tick(model); /* 1000 passes of CPU 1 */
    check(second->place == MODEL_RUNNING && level_now(model, second) == 0);
    check(level_now(model, first) == 0);
    model_free(model);
}

static void waking_lifts_all_except_those_of_the_fast_lane(void)
{
    struct model *model = model_new("priority:passes", 1, 1);
    set(model, "idle_passes", 0);
    struct model_task *task = fork_at(model, 8);
    model_block(model, 0);
    model_wake(model, task);
    check(task->task.level == 0);
    struct model_task *five = fork_at(model, 5);
    model_tick(model);
    check(five->place == MODEL_RUNNING);
    model_block(model, 0);
    model_wake(model, five);
    check(five->task.level == 5);
    model_free(model);
}

/* ---- several CPUs ---- */

static void who_wakes_goes_to_the_cpu_that_runs_the_lowest(void)
{
    struct model *model = machine("priority", 3);
    fork_at(model, 4);
    fork_at(model, 8);
    fork_at(model, 6);
    check_picks(model, "0:3 1:4 2:5");
    fork_at(model, 3);
    check_picks(model, "1:6");
    fork_at(model, 3);
    check_picks(model, "2:7");
    fork_at(model, 3);
    check_picks(model, "0:8");
    fork_at(model, 3);
    check_picks(model, "");
    model_free(model);
}

static void two_that_wake_together_go_to_two_cpus(void)
{
    struct model *model = machine("priority", 2);
    struct model_task *first = fork_at(model, 1);
    struct model_task *second = fork_at(model, 1);
    model_block(model, 0);
    model_block(model, 1);
    fork_at(model, 7);
    fork_at(model, 8);
    model_wake_unsettled(model, first);
    model_wake_unsettled(model, second);
    model_settle(model);
    check(first->place == MODEL_RUNNING && second->place == MODEL_RUNNING);
    model_free(model);
}

static void a_cpu_takes_a_higher_one_that_waits_elsewhere(void)
{
    struct model *model = machine("priority", 2);
    struct model_task *a = fork_at(model, 2);
    struct model_task *b = fork_at(model, 2);
    struct model_task *c = fork_at(model, 3);
    model_end(model, b);
    check(c->place == MODEL_RUNNING && a->place == MODEL_RUNNING); /* idle CPU 1 stole it */
    struct model_task *d = fork_at(model, 6);
    uint32_t other = 1 - d->queue;
    check(d->place == MODEL_QUEUED);
    model_set_attribute(model, model->cpus[other].current, MODEL_PRIORITY, 9);
    model_tick(model);
    check(d->place == MODEL_RUNNING && d->task.cpu == other);
    model_free(model);
}

/* Two CPUs run level 5 and the third CPU a higher task: the tasks queued behind it are shared. */
static void equals_share_the_cpus_that_serve_their_level(void)
{
    struct model *model = machine("priority", 3);
    struct model_task *high = fork_at(model, 1);
    struct model_task *equal[6];
    for (int i = 0; i < 6; i++)
        equal[i] = fork_at(model, 5);
    model_ticks(model, 300);
    for (int i = 0; i < 6; i++) {
        uint64_t ticks = equal[i]->task.run_time / MODEL_TICK_NS;
        check(ticks >= 95 && ticks <= 105);
    }
    check(high->task.run_time == 300 * MODEL_TICK_NS);
    model_free(model);
}

/*
 * Two tasks run on a CPU each. A higher task displaces the first, which moves instead of waiting.
 */
static void who_is_displaced_shares_with_its_equals(void)
{
    struct model *model = machine("priority", 2);
    struct model_task *first = fork_at(model, 5);
    struct model_task *second = fork_at(model, 5);
    struct model_task *high = fork_at(model, 1);
    check(first->place == MODEL_QUEUED && first->queue == high->task.cpu);
    model_ticks(model, 40);
    check(high->task.run_time == 40 * MODEL_TICK_NS);
    check(first->task.run_time >= 19 * MODEL_TICK_NS &&
          second->task.run_time >= 19 * MODEL_TICK_NS);
    model_free(model);
}

static void what_cannot_be_more_even_stays(void)
{
    struct model *model = machine("priority", 2);
    struct model_task *task[3];
    uint32_t cpu[3];
    for (int i = 0; i < 3; i++)
        task[i] = fork_at(model, 5);
    model_ticks(model, 4);
    for (int i = 0; i < 3; i++)
        cpu[i] = task[i]->task.cpu;
    for (int tick = 0; tick < 40; tick++) {
        model_tick(model);
        for (int i = 0; i < 3; i++)
            check(task[i]->task.cpu == cpu[i]);
    }
    model_free(model);
}

static void of_cpus_that_serve_the_same_level_the_one_with_fewer_tasks_is_chosen(void)
{
    struct model *model = machine("priority", 2);
    for (int i = 0; i < 3; i++)
        fork_at(model, 5); /* two on CPU 0 */
    check(model->queues[0].queued == 1 && model->queues[1].queued == 0);
    fork_at(model, 7);
    check(model->queues[0].queued == 1 && model->queues[1].queued == 1);
    model_free(model);
}

static void ties_between_cpus_follow_the_rule(void)
{
    struct model *model = machine("priority", 3);
    for (int i = 0; i < 3; i++)
        fork_at(model, 5);
    struct model_task *third = task_of(model, 5);
    for (uint32_t cpu = 0; cpu < 3; cpu++)
        model_block(model, cpu);
    model_wake(model, third);
    check(model_running(model, 2) == 5); /* its own CPU, though all are idle */
    model_wake(model, task_of(model, 3));
    model_wake(model, task_of(model, 4));
    model_block(model, 0);
    fork_at(model, 6);
    model_set_attribute(model, model->cpus[0].current, MODEL_PRIORITY, 0);
    fork_at(model, 6);
    fork_at(model, 6); /* one waits on CPU 1, the other on CPU 2 */
    check(model->queues[1].queued == 1 && model->queues[2].queued == 1);
    model_set_attribute(model, model->cpus[0].current, MODEL_PRIORITY, 10);
    check(policy_priority.balance(&model->scheduler, 0, false) == 1);
    model_free(model);
}

static void an_idle_cpu_leaves_alone_who_is_about_to_run(void)
{
    struct model *model = machine("priority", 2);
    struct model_task *task = task_of(model, 1);
    model_wake_unsettled(model, task);
    uint32_t other = 1 - task->queue;
    check(policy_priority.balance(&model->scheduler, other, true) == NO_CPU);
    model_wake_unsettled(model, task_of(model, 2)); /* to the idle CPU */
    check(task_of(model, 2)->queue == other);
    model_settle(model);
    model_free(model);
}

enum { CROWD = 30 };

/* A random act of the CPU's task before the next tick. */
static void random_act(struct model *model, uint32_t cpu)
{
    struct model_task *task = model->cpus[cpu].current;
    struct model_task *other = model->tasks[random_below(model->task_count)];
    uint64_t act = random_below(100);
    if (act < 10)
        model_sleep(model, cpu, 1 + random_below(12));
    else if (act < 15)
        model_yield(model, cpu);
    else if (act < 18 && other->place != MODEL_ENDED)
        model_set_attribute(model, other, MODEL_PRIORITY, (uint32_t)random_below(11));
    else if (act < 20) {
        model_end(model, task);
        fork_at(model, (int32_t)random_below(11));
    }
}

/* Returns a level's place in the order of service. */
static uint32_t rank_of(const struct model *model, uint32_t level)
{
    bool is_study = model->policy == &policy_study_priority;
    return is_study ? study_priority_rank(&model->scheduler, level) : level;
}

/* State of a task at the end of a tick. */
struct tick_record {
    bool waited;
    uint64_t selections;
    uint32_t place;
};

/*
 * The invariant: a task waits at the end of a tick while a lower task runs. If it still waits at
 * the end of the next tick, no task lower than its level runs. The worse of its two levels counts,
 * because it may have changed in between.
 */
static void check_strictness(struct model *model, struct tick_record *records)
{
    uint32_t lowest_running = 0;
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        const struct model_task *task = model->cpus[cpu].current;
        uint32_t place = task ? rank_of(model, level_now(model, task)) : NO_RANK;
        if (place > lowest_running)
            lowest_running = place;
    }
    for (uint32_t i = 0; i < model->task_count; i++) {
        const struct model_task *task = model->tasks[i];
        struct tick_record *record = &records[i];
        bool waits = task->place == MODEL_QUEUED;
        uint32_t place = waits ? rank_of(model, level_now(model, task)) : 0;
        uint32_t worst = place > record->place ? place : record->place;
        check(!(waits && record->waited && record->selections == task->task.selections &&
                worst < lowest_running));
        *record = (struct tick_record){waits, task->task.selections, place};
    }
}

static void no_lower_one_runs_for_longer_than_a_tick_while_a_higher_one_waits(void)
{
    static struct tick_record records[100000];
    for (uint64_t seed = 1; seed <= 24; seed++) {
        uint32_t cpus = 1 + (uint32_t)(seed % 8);
        struct model *model = model_new("priority", cpus, seed);
        memset(records, 0, sizeof(records));
        random_state = seed * 0x9e3779b97f4a7c15ull | 1;
        set(model, "aging_interval", seed % 2 ? 50 : 5);
        set(model, "slice", 1 + (int64_t)seed % 3);
        set(model, "fast_lane", seed % 5 == 0);
        set(model, "placement", (int64_t)seed / 8 % 3);
        set(model, "preemption", seed % 4 != 1);
        for (int i = 0; i < CROWD; i++)
            fork_at(model, (int32_t)random_below(11));
        for (int tick = 0; tick < 1500; tick++) {
            for (uint32_t cpu = 0; cpu < cpus; cpu++) {
                if (model->cpus[cpu].current)
                    random_act(model, cpu);
            }
            model_tick(model);
            check(model->task_count < sizeof(records) / sizeof(records[0]));
            check_strictness(model, records);
        }
        model_free(model);
    }
}

/*
 * With aging, no task waits longer than it takes to rise to the top and then to complete a round.
 */
static void nobody_starves(void)
{
    for (uint64_t seed = 1; seed <= 16; seed++) {
        struct model *model = machine("priority", 1 + (uint32_t)(seed % 4));
        random_state = seed * 0x9e3779b97f4a7c15ull | 1;
        for (int i = 0; i < CROWD; i++)
            fork_at(model, (int32_t)random_below(11));
        for (int tick = 0; tick < 4000; tick++) {
            uint32_t cpu = (uint32_t)random_below(model->scheduler.cpus);
            if (random_below(2) == 0 && model->cpus[cpu].current)
                model_sleep(model, cpu, 1 + random_below(3));
            model_tick(model);
            for (uint32_t i = 2; i < model->task_count; i++) {
                const struct model_task *task = model->tasks[i];
                uint64_t waited = model->now - task->task.queued_since;
                check(task->place != MODEL_QUEUED || waited <= (10 * 50 + CROWD) * MODEL_TICK_NS);
            }
        }
        model_free(model);
    }
}

static void values_out_of_range_are_refused(void)
{
    for (uint32_t source = 0; source < policy_sources_count; source++) {
        const struct policy *policy = policies[source];
        struct model *model = model_new("priority", 1, 1);
        model_install(model, &(struct policy_choice){.policy = policy});
        for (uint32_t i = 0; i < policy->tunable_count; i++) {
            const struct tunable *tunable = &policy->tunables[i];
            int64_t before = model->scheduler.tunable[i];
            check(tunable_set(&model->scheduler, policy, i, tunable->minimum - 1) ==
                  POLICY_ERROR_RANGE);
            check(tunable_set(&model->scheduler, policy, i, tunable->maximum + 1) ==
                  POLICY_ERROR_RANGE);
            check(model->scheduler.tunable[i] == before);
        }
        model_free(model);
    }
}

int main(void)
{
    run_test(the_highest_runs_until_it_blocks);
    run_test(equals_take_turns_in_the_order_of_arrival);
    run_test(a_slice_lasts_as_many_ticks);
    run_test(a_higher_one_that_wakes_or_is_forked_preempts_at_once);
    run_test(who_was_preempted_goes_on_with_its_turn);
    run_test(a_priority_that_changes_counts_at_once);
    run_test(a_running_task_keeps_its_turn_when_another_attribute_changes);
    run_test(who_waits_rises_at_every_multiple_of_the_interval);
    run_test(the_step_and_the_interval_are_tunable);
    run_test(who_rises_is_behind_who_is_there);
    run_test(who_was_preempted_keeps_its_raise_for_its_turn);
    run_test(a_permanent_raise_lasts_until_the_priority_changes);
    run_test(exempt_tasks_never_rise);
    run_test(exempt_tasks_take_turns_with_the_others);
    run_test(a_stalled_cpu_ages_faster);
    run_test(a_wait_of_the_limit_itself_is_not_over_it);
    run_test(behaviour_moves_a_task_by_two_levels_at_most);
    run_test(behaviour_keeps_within_the_levels);
    run_test(time_in_the_queue_is_no_sleep);
    run_test(levels_can_be_merged);
    run_test(the_fast_lane_is_served_before_the_highest);
    run_test(who_rises_leaves_the_fast_lane);
    run_test(pids_above_the_limit_have_priority_5);
    run_test(a_task_is_ended_after_its_run_time);
    run_test(without_preemption_a_higher_one_waits_for_the_tick);
    run_test(a_new_task_goes_where_the_fewest_wait_and_stays);
    run_test(tasks_move_only_at_the_ticks_of_balancing);
    run_test(the_least_weight_is_the_least_sum_of_10_less_the_level);
    run_test(thesis_has_all_quirks);
    run_test(thesis_sets_pids_above_100_to_5);
    run_test(passes_age_all);
    run_test(passes_of_an_idle_cpu_are_many);
    run_test(waking_lifts_all_except_those_of_the_fast_lane);
    run_test(who_wakes_goes_to_the_cpu_that_runs_the_lowest);
    run_test(two_that_wake_together_go_to_two_cpus);
    run_test(a_cpu_takes_a_higher_one_that_waits_elsewhere);
    run_test(equals_share_the_cpus_that_serve_their_level);
    run_test(who_is_displaced_shares_with_its_equals);
    run_test(what_cannot_be_more_even_stays);
    run_test(of_cpus_that_serve_the_same_level_the_one_with_fewer_tasks_is_chosen);
    run_test(ties_between_cpus_follow_the_rule);
    run_test(an_idle_cpu_leaves_alone_who_is_about_to_run);
    run_test(no_lower_one_runs_for_longer_than_a_tick_while_a_higher_one_waits);
    run_test(nobody_starves);
    run_test(values_out_of_range_are_refused);
    run_test(without_inheritance_the_one_between_holds_up_both);
    run_test(a_task_is_as_urgent_as_those_that_wait_for_it);
    run_test(what_is_inherited_goes_on_along_the_chain);
    run_test(the_waiters_of_one_that_ends_wait_for_none);
    run_test(a_ring_of_waits_is_told_to_an_end);
    run_test(the_most_urgent_of_those_that_wait_goes_on);
    run_test(an_owner_is_lifted_wherever_it_is);
    return 0;
}
