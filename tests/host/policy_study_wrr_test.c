/* SPDX-License-Identifier: MIT */

/* Tests study 5's two arrays: rounds, slices, and where tasks are inserted. */

#include "policy_harness.h"
#include "random.h"

#include "../../policies/studies/study-wrr.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_study_wrr};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

static struct model *machine(uint32_t cpus)
{
    return model_new("wrr:arrays", cpus, 1);
}

static struct model_task *fork_with(struct model *model, uint32_t weight)
{
    struct model_task *task = model_fork(model, NULL);
    model_set_attribute(model, task, MODEL_WEIGHT, weight);
    return task;
}

static double ticks_of(const struct model_task *task)
{
    return (double)task->task.run_time / MODEL_TICK_NS;
}

/* In each round, heavier tasks run first, each for a number of ticks equal to its weight. */
static void a_round_is_a_slice_of_each(void)
{
    struct model *model = machine(1);
    fork_with(model, 1);
    fork_with(model, 3);
    fork_with(model, 2);
    model_ticks(model, 30);
    while (model_running(model, 0) != 2)
        model_tick(model);
    model_clear_log(model);
    model_ticks(model, 18);
    check_picks(model, "3 1 2 3 1 2 3 1 2");
    model_free(model);
}

static void shares_are_those_of_the_weights(void)
{
    for (uint32_t count = 2; count <= 12; count++) {
        struct model *model = machine(1);
        uint64_t weights = 0;
        for (uint32_t i = 0; i < count; i++)
            weights += fork_with(model, 1 + (uint32_t)random_below(10))->task.weight;
        model_ticks(model, 400);
        double before[12];
        for (uint32_t i = 0; i < count; i++)
            before[i] = ticks_of(model->tasks[i]);
        model_ticks(model, (uint32_t)weights * 20);
        for (uint32_t i = 0; i < count; i++) {
            double error = ticks_of(model->tasks[i]) - before[i];
            error -= 20.0 * model->tasks[i]->task.weight;
            check(error >= -10 && error <= 10);
        }
        model_free(model);
    }
}

/* The task has not used up its slice: it is in the active array, and preempts a lighter task. */
static void one_that_wakes_goes_on_with_its_slice(void)
{
    struct model *model = machine(1);
    struct model_task *light = fork_with(model, 2);
    struct model_task *heavy = fork_with(model, 6);
    while (model->cpus[0].current != heavy)
        model_tick(model);
    model_ticks(model, 2);
    model_block(model, 0);
    model_advance(model, MODEL_TICK_NS / 2);
    check(model->cpus[0].current == light);
    model_wake(model, heavy);
    check(model->cpus[0].current == heavy);
    double before = ticks_of(heavy);
    while (model->cpus[0].current == heavy)
        model_tick(model);
    check(ticks_of(heavy) - before <= 4.5);
    model_free(model);
}

/* After any number of wake-ups, tasks expire when their slices are used up, and the others run. */
static void sleepers_starve_nobody(void)
{
    struct model *model = machine(1);
    struct model_task *hog = fork_with(model, 1);
    for (int i = 0; i < 5; i++)
        fork_with(model, 10);
    for (int tick = 0; tick < 5100; tick++) {
        model_tick(model);
        if (model->cpus[0].current && model->cpus[0].current != hog && random_below(3) == 0)
            model_sleep(model, 0, 1);
    }
    check(ticks_of(hog) >= 95);
    model_free(model);
}

static void forking_and_yielding_are_no_way_to_more(void)
{
    struct model *model = machine(1);
    struct model_task *victim = fork_with(model, 5);
    struct model_task *parent = fork_with(model, 5);
    for (int round = 0; round < 3000; round++) {
        model_tick(model);
        if (model->cpus[0].current != parent)
            continue;
        model_fork(model, parent);
        model_yield(model, 0);
        for (uint32_t i = 2; i + 1 < model->task_count; i++) {
            if (model->tasks[i]->place != MODEL_ENDED)
                model_end(model, model->tasks[i]);
        }
    }
    check(ticks_of(victim) >= 1000);
    model_free(model);
}

/* A queued task is found in either array after the arrays have changed. */
static void weights_may_change_at_any_time(void)
{
    struct model *model = machine(3);
    for (int i = 0; i < 12; i++)
        fork_with(model, 1 + (uint32_t)random_below(10));
    for (int step = 0; step < 5000; step++) {
        struct model_task *task = model->tasks[random_below(12)];
        uint32_t cpu = (uint32_t)random_below(3);
        uint64_t act = random_below(6);
        if (act < 3)
            model_tick(model);
        else if (act == 3 && model->cpus[cpu].current)
            model_sleep(model, cpu, 1 + random_below(5));
        else if (act == 4 && model->cpus[cpu].current)
            model_yield(model, cpu);
        else
            model_set_attribute(model, task, MODEL_WEIGHT, 1 + (uint32_t)random_below(10));
    }
    model_free(model);
}

int main(void)
{
    run_test(a_round_is_a_slice_of_each);
    run_test(shares_are_those_of_the_weights);
    run_test(one_that_wakes_goes_on_with_its_slice);
    run_test(sleepers_starve_nobody);
    run_test(forking_and_yielding_are_no_way_to_more);
    run_test(weights_may_change_at_any_time);
    return 0;
}
