/* SPDX-License-Identifier: MIT */

/*
 * The example policies of tests/policies do what they say: so the interface gives
 * a lottery and a feedback queue all that they need.
 */

#include "policy_harness.h"

#include "../../policies/support/registry.c"
#include "../policies/test_lottery.c"
#include "../policies/test_mlfq.c"

const struct policy *const policies[] = {&policy_test_lottery, &policy_test_mlfq};
const uint32_t policies_count = 2;

/* Draws of `turns` turns among tasks of 1, 2, 3 … tickets. */
static double chi_square_of_draws(uint32_t count, uint64_t turns, uint64_t seed)
{
    struct model *model = model_new("test-lottery", 1, seed);
    double total = 0;
    double chi_square = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct model_task *task = model_fork(model, NULL);
        model_set_attribute(model, task, MODEL_TICKETS, i + 1);
        total += i + 1;
    }
    for (uint32_t i = 0; i < count; i++)
        model->tasks[i]->task.selections = 0;
    for (uint64_t i = 0; i < turns; i++)
        model_tick(model);
    for (uint32_t i = 0; i < count; i++) {
        double expected = (double)turns * (i + 1) / total;
        double difference = (double)model->tasks[i]->task.selections - expected;
        chi_square += difference * difference / expected;
    }
    model_free(model);
    return chi_square;
}

static void draws_follow_the_tickets(void)
{
    const uint32_t seeds = 20;
    double sum = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++)
        sum += chi_square_of_draws(11, 2000, seed);
    /* The sum has 200 degrees of freedom: it lies within 140 and 270 in 99.9 % of all cases. */
    check(sum > 140 && sum < 270);
}

static void draws_are_fair_while_tasks_come_and_go(void)
{
    struct model *model = model_new("test-lottery", 1, 1);
    for (int i = 0; i < 20; i++)
        model_fork(model, NULL);
    for (uint32_t i = 0; i < 6000; i++) {
        model_tick(model);
        if (i % 3 == 0)
            model_sleep(model, 0, 1 + i % 7);
    }
    for (uint32_t i = 0; i < 20; i++) {
        uint64_t selections = model->tasks[i]->task.selections;
        check(selections > 250 && selections < 650);
    }
    model_free(model);
}

static uint64_t level(const struct model *model, uint32_t task)
{
    return model->tasks[task]->task.level;
}

static void a_task_goes_down_by_its_allotments(void)
{
    struct model *model = model_new("test-mlfq", 1, 1);
    model_fork(model, NULL);
    for (uint32_t tick = 1; tick < 480; tick++) {
        model_tick(model);
        check(level(model, 0) == (tick < 8 ? 3 : tick < 8 + 16 ? 2 : tick < 8 + 16 + 32 ? 1 : 0));
    }
    model_tick(model); /* the boost */
    check(level(model, 0) == 3);
    model_free(model);
}

static void slices_are_those_of_the_level(void)
{
    struct model *model = model_new("test-mlfq", 1, 1);
    model_fork(model, NULL);
    model_fork(model, NULL);
    model_ticks(model, 16);
    check_picks(model, "1 2 1 2 1 2 1 2 1");
    model_ticks(model, 16);
    check_picks(model, "2 1 2 1");
    model_free(model);
}

static void yielding_does_not_save_the_allotment(void)
{
    struct model *model = model_new("test-mlfq", 1, 1);
    model_fork(model, NULL);
    model_fork(model, NULL);
    for (int i = 0; i < 16; i++) {
        model_tick(model);
        model_yield(model, 0);
    }
    check(level(model, 0) == 2 && level(model, 1) == 2);
    model_free(model);

    model = model_new("test-mlfq:four-quanta", 1, 1);
    model_fork(model, NULL);
    model_tick(model);
    check(level(model, 0) == 2);
    for (int i = 0; i < 16; i++) {
        model_tick(model);
        model_yield(model, 0); /* one tick before the quantum ends */
    }
    check(level(model, 0) == 2);
    model_free(model);
}

static void a_higher_level_takes_over_and_gives_back(void)
{
    struct model *model = model_new("test-mlfq", 1, 1);
    model_fork(model, NULL);
    model_ticks(model, 100);
    check(level(model, 0) == 0);
    model_clear_log(model);
    model_fork(model, NULL);
    model_sleep(model, 0, 5); /* 2, at the top */
    model_ticks(model, 4);
    check_picks(model, "2 1");
    model_tick(model);
    check_picks(model, "2");
    model_block(model, 0);
    check_picks(model, "1"); /* first at its level: it was preempted */
    model_free(model);
}

static void the_boost_reaches_all(void)
{
    struct model *model = model_new("test-mlfq", 2, 1);
    for (int i = 0; i < 6; i++)
        model_fork(model, NULL);
    model_ticks(model, 350);
    for (uint32_t i = 0; i < 6; i++)
        check(level(model, i) == 0);
    struct model_task *sleeper = model->cpus[0].current;
    model_block(model, 0);
    model_ticks(model, 140); /* the boost was ten ticks ago */
    model_wake(model, sleeper);
    check(sleeper->task.level == 3);
    for (uint32_t i = 0; i < 6; i++)
        check(level(model, i) == 3);
    model_free(model);
}

int main(void)
{
    run_test(draws_follow_the_tickets);
    run_test(draws_are_fair_while_tasks_come_and_go);
    run_test(a_task_goes_down_by_its_allotments);
    run_test(slices_are_those_of_the_level);
    run_test(yielding_does_not_save_the_allotment);
    run_test(a_higher_level_takes_over_and_gives_back);
    run_test(the_boost_reaches_all);
    return 0;
}
