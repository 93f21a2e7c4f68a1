/* SPDX-License-Identifier: MIT */

/*
 * The example policy of tests/policies does what it says: so the interface gives
 * a lottery all that it needs.
 */

#include "policy_harness.h"

#include "../../policies/support/registry.c"
#include "../policies/test_lottery.c"

const struct policy *const policies[] = {&policy_test_lottery};
const uint32_t policies_count = 1;

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

int main(void)
{
    run_test(draws_follow_the_tickets);
    run_test(draws_are_fair_while_tasks_come_and_go);
    return 0;
}
