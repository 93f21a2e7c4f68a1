/* SPDX-License-Identifier: MIT */

/*
 * @name@
 *
 * Tests the order of tasks on policy_harness.h's model of a machine: a test forks tasks,
 * advances ticks, and checks the picked tasks.
 */

#include "policy_harness.h"

#include "../../policies/@name@.c"

#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_@prefix@};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

/* PIDs count from 1. The first task runs as soon as it exists. */
static void first_come_first_served(void)
{
    struct model *model = model_new("@name@", 1, 1);
    for (int i = 0; i < 3; i++)
        model_fork(model, NULL);
    model_ticks(model, 4);
    check_picks(model, "1 2 3 1 2");
    model_free(model);
}

static void a_slice_lasts_as_many_ticks(void)
{
    struct model *model = model_new("@name@", 1, 1);
    uint32_t slice = tunable_find(model->policy, "slice", strlen("slice"));
    check(tunable_set(&model->scheduler, model->policy, slice, 3) == POLICY_OK);
    struct model_task *task = model_fork(model, NULL);
    model_fork(model, NULL);
    check(model->policy->time_slice(&model->scheduler, &task->task) == 3);
    model_ticks(model, 2);
    check_picks(model, "1");
    model_tick(model);
    check_picks(model, "2");
    check(task->task.run_time == 3 * MODEL_TICK_NS);
    model_free(model);
}

static void who_wakes_waits_at_the_end(void)
{
    struct model *model = model_new("@name@", 1, 1);
    for (int i = 0; i < 3; i++)
        model_fork(model, NULL);
    model_block(model, 0); /* the running task of CPU 0, task 1 */
    model_wake(model, model->tasks[0]);
    model_ticks(model, 2);
    check_picks(model, "1 2 3 1");
    model_free(model);
}

/* With several CPUs, picks have the form CPU:PID. */
static void each_cpu_has_its_line(void)
{
    struct model *model = model_new("@name@", 2, 1);
    for (int i = 0; i < 4; i++)
        model_fork(model, NULL);
    model_ticks(model, 2);
    check_picks(model, "0:1 1:2 0:3 1:4 0:1 1:2");
    model_free(model);
}

int main(void)
{
    run_test(first_come_first_served);
    run_test(a_slice_lasts_as_many_ticks);
    run_test(who_wakes_waits_at_the_end);
    run_test(each_cpu_has_its_line);
    return 0;
}
