/* SPDX-License-Identifier: MIT */

/*
 * The example policy of tests/policies does what it says: so the interface gives
 * a feedback queue all that it needs.
 */

#include "policy_harness.h"

#include "../../policies/support/registry.c"
#include "../policies/test_mlfq.c"

const struct policy *const policies[] = {&policy_test_mlfq};
const uint32_t policies_count = 1;

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
    run_test(a_task_goes_down_by_its_allotments);
    run_test(slices_are_those_of_the_level);
    run_test(yielding_does_not_save_the_allotment);
    run_test(a_higher_level_takes_over_and_gives_back);
    run_test(the_boost_reaches_all);
    return 0;
}
