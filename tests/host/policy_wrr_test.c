/* SPDX-License-Identifier: MIT */

/* Tests weighted round-robin: the order of slices, and that slices are exact in the long run. */

#include "policy_harness.h"

#include "../../policies/support/registry.c"
#include "../../policies/wrr.c"

const struct policy *const policies[] = {&policy_wrr};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

#define MICROSECOND 1000ull

/* Makes tasks 1, 2, … with the weights, up to a 0, on one CPU, with this quantum. */
static struct model *machine_with(const char *policy, int64_t quantum_us, const uint32_t *weights)
{
    struct model *model = model_new(policy, 1, 1);
    check(tunable_set(&model->scheduler, model->policy,
                      tunable_find(model->policy, "quantum_us", strlen("quantum_us")),
                      quantum_us) == POLICY_OK);
    for (uint32_t i = 0; weights[i] > 0; i++) {
        struct model_task *task = model_fork(model, NULL);
        task->task.weight = weights[i]; /* before its first slice ends, or begins */
    }
    /* The first task was picked before its weight was set. */
    struct wrr_task *first = wrr_task_of(&model->tasks[0]->task);
    first->left = (int64_t)wrr_slice(&model->scheduler, &model->tasks[0]->task);
    model_clear_log(model);
    return model;
}

/*
 * Checks the order of the next slices and their length in ticks. The first is the running task's,
 * from now.
 */
static void check_turns(struct model *model, const uint32_t (*turns)[2], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        check(model_running(model, 0) == (int32_t)turns[i][0]);
        uint64_t selections = model->cpus[0].current->task.selections;
        struct model_task *task = model->cpus[0].current;
        uint32_t lasted = 0;
        while (model->cpus[0].current == task && task->task.selections == selections) {
            model_tick(model);
            lasted++;
        }
        if (lasted != turns[i][1])
            fprintf(stderr, "turn %u, of task %u, lasted %u ticks\n", i, turns[i][0], lasted);
        check(lasted == turns[i][1]);
    }
}

#define COUNT(turns) (sizeof(turns) / sizeof((turns)[0]))

static void a_turn_is_weight_times_ten_milliseconds(void)
{
    static const uint32_t weights[] = {5, 1, 10, 0};
    static const uint32_t turns[][2] = {{1, 5}, {2, 1}, {3, 10}, {1, 5}, {2, 1}, {3, 10}, {1, 5}};
    struct model *model = machine_with("wrr", 10000, weights);
    for (uint32_t i = 0; i < 3; i++)
        check(policy_wrr.time_slice(&model->scheduler, &model->tasks[i]->task) == weights[i]);
    check_turns(model, turns, COUNT(turns));
    model_free(model);
}

static void the_standard_weight_is_5(void)
{
    struct model *model = model_new("wrr", 1, 1);
    model_fork(model, NULL);
    model_fork(model, NULL);
    static const uint32_t turns[][2] = {{1, 5}, {2, 5}, {1, 5}};
    check_turns(model, turns, COUNT(turns));
    check(policy_shares_by(model->policy, &model->scheduler) == SHARES_BY_WEIGHT);
    model_free(model);
}

/* Slices of 15 and 45 ms in ticks of 10 ms: 1 and 2 ticks alternate, as do 4 and 5. */
static void a_slice_that_is_no_multiple_of_the_tick_is_exact_in_the_long_run(void)
{
    static const uint32_t weights[] = {1, 3, 0};
    static const uint32_t turns[][2] = {{1, 1}, {2, 4}, {1, 2}, {2, 5}, {1, 1}, {2, 4}, {1, 2}};
    struct model *model = machine_with("wrr", 15000, weights);
    check_turns(model, turns, COUNT(turns));
    for (int i = 0; i < 12000; i++)
        model_tick(model);
    double ratio = (double)model->tasks[1]->task.run_time / (double)model->tasks[0]->task.run_time;
    check(ratio > 2.998 && ratio < 3.002);
    model_free(model);
}

static void a_quantum_shorter_than_a_tick_is_a_tick(void)
{
    static const uint32_t weights[] = {1, 10, 0};
    static const uint32_t turns[][2] = {{1, 1}, {2, 10}, {1, 1}, {2, 10}};
    struct model *model = machine_with("wrr", 100, weights);
    check_turns(model, turns, COUNT(turns));
    model_free(model);
}

/*
 * A task sleeps most of a tick and leaves the CPU within it. The tasks picked at that time are
 * CPU-bound, and their shares still follow their weights.
 */
static void turns_that_begin_within_a_tick_gain_and_lose_nothing(void)
{
    static const uint32_t weights[] = {1, 1, 2, 4, 0};
    struct model *model = machine_with("wrr", 10000, weights);
    for (uint64_t tick = 0; tick < 24000; tick++) {
        uint64_t part = MODEL_TICK_NS * (1 + tick * 7 % 9) / 10;
        model_advance(model, part);
        if (model_running(model, 0) == 1) {
            struct model_task *task = model->cpus[0].current;
            task->wake_at = model->now + MODEL_TICK_NS;
            model_block(model, 0);
        }
        model_advance(model, MODEL_TICK_NS - part);
        model_tick_cpu(model, 0);
    }
    double one = (double)model->tasks[1]->task.run_time;
    check(model->tasks[0]->task.run_time > 0);
    check((double)model->tasks[2]->task.run_time / one > 1.995);
    check((double)model->tasks[2]->task.run_time / one < 2.005);
    check((double)model->tasks[3]->task.run_time / one > 3.99);
    check((double)model->tasks[3]->task.run_time / one < 4.01);
    model_free(model);
}

/*
 * After any operation, a slice is off by at most half a tick, and its carry-over has the same
 * bound.
 */
static void no_turn_is_off_by_more_than_half_a_tick(void)
{
    static const uint32_t weights[] = {1, 3, 7, 2, 0};
    struct model *model = machine_with("wrr", 13700, weights);
    for (uint32_t step = 0; step < 20000; step++) {
        uint64_t part = MODEL_TICK_NS * (step * 31 % 17) / 17;
        model_advance(model, part);
        if (step % 5 == 0 && model->cpus[0].current)
            model_sleep(model, 0, 1 + step % 3);
        else if (step % 7 == 0 && model->cpus[0].current)
            model_yield(model, 0);
        model_advance(model, MODEL_TICK_NS - part);
        model_tick_cpu(model, 0);
        for (uint32_t i = 0; i < model->task_count; i++) {
            const struct wrr_task *state = wrr_task_of(&model->tasks[i]->task);
            int64_t slice = (int64_t)wrr_slice(&model->scheduler, &model->tasks[i]->task);
            int64_t half = (int64_t)MODEL_TICK_NS / 2;
            check(state->left >= -half && state->left <= half + (state->in_turn ? slice : 0));
        }
    }
    model_free(model);
}

/* A remaining slice is lost, but a debt stays. */
static void who_blocks_or_yields_keeps_its_debts_only(void)
{
    static const uint32_t weights[] = {2, 2, 0};
    struct model *model = machine_with("wrr", 10000, weights);
    const struct wrr_task *state = wrr_task_of(&model->tasks[0]->task);
    model_tick(model);
    model_block(model, 0);
    model_wake(model, model->tasks[0]);
    check(state->left == 0);
    model_ticks(model, 2);
    check(model_running(model, 0) == 1);
    model_tick(model);
    model_advance(model, MODEL_TICK_NS * 14 / 10); /* a late tick */
    model_yield(model, 0);
    check(state->left == -(int64_t)(MODEL_TICK_NS * 4 / 10));
    model_free(model);
}

static void who_wakes_or_yields_goes_to_the_end(void)
{
    static const uint32_t weights[] = {1, 1, 1, 0};
    struct model *model = machine_with("wrr", 10000, weights);
    model_block(model, 0);
    model_wake(model, model->tasks[0]);
    model_yield(model, 0);
    model_yield(model, 0);
    model_yield(model, 0);
    check_picks(model, "2 3 1 2");
    model_free(model);
}

static void a_new_weight_counts_from_the_next_turn_on(void)
{
    static const uint32_t weights[] = {3, 1, 0};
    static const uint32_t turns[][2] = {{1, 1}, {2, 1}, {1, 7}, {2, 1}};
    struct model *model = machine_with("wrr", 10000, weights);
    model_ticks(model, 2);
    model_set_attribute(model, model->tasks[0], MODEL_WEIGHT, 7);
    check_picks(model, "1"); /* it continues its slice */
    check_turns(model, turns, COUNT(turns));
    struct model_task *child = model_fork(model, model->tasks[0]);
    check(policy_wrr.time_slice(&model->scheduler, &child->task) == 7);
    model_free(model);
}

/* Repeated changes of a task's attributes do not accumulate credit. */
static void changes_of_attributes_give_no_credit(void)
{
    static const uint32_t weights[] = {4, 4, 0};
    struct model *model = machine_with("wrr", 10000, weights);
    for (int i = 0; i < 20; i++) {
        model_tick(model);
        struct model_task *task = model->cpus[0].current;
        model_set_attribute(model, task, MODEL_WEIGHT, 4);
        model_yield(model, 0);
        model_set_attribute(model, task, MODEL_TICKETS, 2);
        check(wrr_task_of(&task->task)->left == 0);
    }
    model_free(model);
}

/* A queued task that is moved keeps the credit of its last slice. */
static void a_move_takes_nothing_away(void)
{
    static const uint32_t weights[] = {1, 1, 0};
    struct model *model = machine_with("wrr", 14000, weights);
    model_tick(model);
    const struct wrr_task *state = wrr_task_of(&model->tasks[0]->task);
    check(!state->in_turn && state->left == 4000000);
    model_set_attribute(model, model->tasks[0], MODEL_WEIGHT, 1);
    check(state->left == 4000000);
    model_free(model);
}

/* Run time under another policy creates no debt. */
static void who_is_adopted_owes_nothing(void)
{
    static const uint32_t weights[] = {3, 2, 0};
    static const uint32_t turns[][2] = {{2, 2}, {1, 3}, {2, 2}, {1, 3}};
    struct model *model = machine_with("wrr", 10000, weights);
    model_ticks(model, 100);
    check(model_running(model, 0) == 1);
    model_switch(model, "wrr");
    check_turns(model, turns, COUNT(turns));
    model_free(model);
}

/* ---- preset linux ---- */

static void linux_slices_are_the_same(void)
{
    static const uint32_t weights[] = {5, 1, 10, 0};
    static const uint32_t turns[][2] = {{1, 5}, {3, 10}, {2, 1}, {1, 5}, {3, 10}, {2, 1}};
    struct model *model = machine_with("wrr:linux", 10000, weights);
    check_turns(model, turns, COUNT(turns));
    model_free(model);
}

/* The list is 4 3 2, and 1 runs at the end of the list: the newest tasks are at the front. */
static void linux_tasks_enter_at_the_front(void)
{
    static const uint32_t weights[] = {1, 1, 1, 1, 0};
    struct model *model = machine_with("wrr:linux", 10000, weights);
    model_ticks(model, 5);
    check_picks(model, "4 3 2 1 4");
    model_block(model, 0); /* 4, the first in the list */
    check_picks(model, "3");
    model_wake(model, model->tasks[4 - 1]); /* first again, behind the pointer */
    model_ticks(model, 4);
    check_picks(model, "2 1 4 3");
    model_yield(model, 0); /* 3 keeps its place */
    model_ticks(model, 4);
    check_picks(model, "2 1 4 3 2");
    model_free(model);
}

static void linux_goes_on_when_the_next_one_leaves(void)
{
    static const uint32_t weights[] = {1, 1, 1, 1, 0};
    struct model *model = machine_with("wrr:linux", 10000, weights);
    model_tick(model);
    check_picks(model, "4"); /* the pointer is at 3 */
    model_end(model, model->tasks[3 - 1]);
    model_ticks(model, 3);
    check_picks(model, "2 1 4");
    model_end(model, model->tasks[4 - 1]); /* the running task */
    model_ticks(model, 2);
    check_picks(model, "2 1 2");
    model_free(model);
}

static void linux_goes_on_with_a_turn_that_was_interrupted(void)
{
    static const uint32_t weights[] = {2, 2, 2, 0};
    struct model *model = machine_with("wrr:linux", 10000, weights);
    static const uint32_t turns[][2] = {{2, 1}, {1, 2}, {3, 2}, {2, 2}};
    model_ticks(model, 5);
    check_picks(model, "3 2"); /* the list is 3 2 1, the pointer at 1 */
    model_set_attribute(model, model->tasks[2 - 1], MODEL_PRIORITY, 1);
    check_picks(model, "2");
    check_turns(model, turns, COUNT(turns));
    model_free(model);
}

/* Tasks from another policy are already in order. */
static void linux_keeps_the_order_of_the_policy_before(void)
{
    static const uint32_t weights[] = {1, 1, 1, 1, 0};
    struct model *model = machine_with("wrr", 10000, weights);
    model_tick(model); /* 3 4 1 wait, 2 runs */
    model_clear_log(model);
    model_switch(model, "wrr:linux");
    model_ticks(model, 4);
    check_picks(model, "3 4 1 2 3");
    model_free(model);
}

static void linux_gives_the_slice_anew_at_each_pick(void)
{
    static const uint32_t weights[] = {1, 1, 0};
    struct model *model = machine_with("wrr:linux", 15000, weights);
    static const uint32_t turns[][2] = {{1, 1}, {2, 1}, {1, 1}, {2, 1}, {1, 1}};
    check_turns(model, turns, COUNT(turns)); /* 15 ms, and never more than one tick */
    model_free(model);
}

/* ---- several CPUs ---- */

static void tasks_spread_and_turns_are_each_cpus_own(void)
{
    struct model *model = model_new("wrr", 2, 1);
    for (int i = 0; i < 4; i++)
        model_fork(model, NULL);
    check_picks(model, "0:1 1:2");
    model_set_attribute(model, model->tasks[3 - 1], MODEL_WEIGHT, 2);
    model_ticks(model, 12);
    check_picks(model, "0:3 1:4 0:1 1:2 0:3");
    model_free(model);
}

int main(void)
{
    run_test(a_turn_is_weight_times_ten_milliseconds);
    run_test(the_standard_weight_is_5);
    run_test(a_slice_that_is_no_multiple_of_the_tick_is_exact_in_the_long_run);
    run_test(a_quantum_shorter_than_a_tick_is_a_tick);
    run_test(turns_that_begin_within_a_tick_gain_and_lose_nothing);
    run_test(no_turn_is_off_by_more_than_half_a_tick);
    run_test(who_blocks_or_yields_keeps_its_debts_only);
    run_test(who_wakes_or_yields_goes_to_the_end);
    run_test(a_new_weight_counts_from_the_next_turn_on);
    run_test(changes_of_attributes_give_no_credit);
    run_test(a_move_takes_nothing_away);
    run_test(who_is_adopted_owes_nothing);
    run_test(linux_slices_are_the_same);
    run_test(linux_tasks_enter_at_the_front);
    run_test(linux_goes_on_when_the_next_one_leaves);
    run_test(linux_goes_on_with_a_turn_that_was_interrupted);
    run_test(linux_keeps_the_order_of_the_policy_before);
    run_test(linux_gives_the_slice_anew_at_each_pick);
    run_test(tasks_spread_and_turns_are_each_cpus_own);
    return 0;
}
