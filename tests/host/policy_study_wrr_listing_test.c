/* SPDX-License-Identifier: MIT */

/* Tests study 5's listing with Linux's list: which tasks alternate, and which starve. */

#include "policy_harness.h"

#include "../../policies/studies/study-wrr-listing.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_study_wrr_listing};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

/* Four tasks that compute. Two of them have begun to alternate. */
static struct model *four_that_compute(void)
{
    struct model *model = model_new("wrr:listing", 1, 1);
    for (int i = 0; i < 4; i++)
        model_fork(model, NULL);
    model_ticks(model, 10);
    model_clear_log(model);
    return model;
}

/* The picked task moves to the front, so the one after it is the one that ran before. */
static void two_of_four_alternate(void)
{
    struct model *model = four_that_compute();
    model_ticks(model, 6);
    check_picks(model, "4 3 4 3 4 3");
    model_free(model);
}

static void another_runs_when_one_ends(void)
{
    struct model *model = four_that_compute();
    model_end(model, model->tasks[3]);
    model_clear_log(model);
    model_ticks(model, 6);
    check_picks(model, "2 3 2 3 2 3");
    model_free(model);
}

/* It enters at the front, and the task that ran before has one more turn. */
static void a_woken_task_waits_for_one_turn(void)
{
    struct model *model = four_that_compute();
    struct model_task *sleeper = model->cpus[0].current;
    int32_t pid = model_running(model, 0);
    model_sleep(model, 0, 3);
    model_ticks(model, 2);
    check(model_running(model, 0) != pid);
    model_wake(model, sleeper);
    model_clear_log(model);
    model_ticks(model, 2);
    check(model_running(model, 0) == pid);
    model_free(model);
}

int main(void)
{
    run_test(two_of_four_alternate);
    run_test(another_runs_when_one_ends);
    run_test(a_woken_task_waits_for_one_turn);
    return 0;
}
