/* SPDX-License-Identifier: MIT */

/*
 * Tests earliest deadline first: order, time slices, admission, and that all admitted tasks receive
 * their runtime before each deadline.
 */

#include "policy_harness.h"
#include "random.h"

#include "../../policies/edf.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_edf};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

#define MS        1000000ull
#define TASKS_MAX 6

static void run_for(struct model *model, uint64_t ms)
{
    model_run_for(model, ms * MS);
}

static void reserve(struct model *model, struct model_task *task, uint64_t runtime, uint64_t period)
{
    model_set_attribute(model, task, MODEL_PERIOD, period * MS);
    model_set_attribute(model, task, MODEL_RUNTIME, runtime * MS);
}

static struct model_task *fork_reserved(struct model *model, uint64_t runtime, uint64_t period)
{
    struct model_task *task = model_fork(model, NULL);
    reserve(model, task, runtime, period);
    return task;
}

static bool is_admitted(const struct model_task *task)
{
    return edf_task_of(&task->task)->reserved > 0;
}

static uint64_t ran(const struct model_task *task)
{
    return task->task.run_time / MS;
}

static void the_earliest_deadline_runs(void)
{
    struct model *model = model_new("edf", 1, 1);
    struct model_task *late = fork_reserved(model, 10, 100);
    check(model_running(model, 0) == late->task.pid);
    struct model_task *early = model_fork(model, NULL);
    check(model_running(model, 0) == late->task.pid); /* has no deadline yet */
    reserve(model, early, 10, 50);
    check(model_running(model, 0) == early->task.pid);
    run_for(model, 10);
    check(ran(early) == 10 && model_running(model, 0) == late->task.pid);
    model_free(model);
}

static void a_budget_is_used_once_in_a_period(void)
{
    struct model *model = model_new("edf", 1, 1);
    struct model_task *task = fork_reserved(model, 7, 33);
    for (uint64_t period = 0; period < 6; period++) {
        check(ran(task) == 7 * period);
        run_for(model, 8);
        check(ran(task) == 7 * (period + 1) && model_running(model, 0) == 0);
        run_for(model, 25);
    }
    model_free(model);
}

static void what_is_left_goes_to_others(void)
{
    struct model *model = model_new("edf", 1, 1);
    struct model_task *task = fork_reserved(model, 10, 40);
    struct model_task *others[] = {model_fork(model, NULL), model_fork(model, NULL)};
    run_for(model, 400);
    check(ran(task) == 100);
    check(ran(others[0]) == 150 && ran(others[1]) == 150);
    model_free(model);
}

static void without_throttling_deadlines_are_put_off(void)
{
    struct model *model = model_new("edf", 1, 1);
    check(tunable_set(&model->scheduler, model->policy, EDF_THROTTLE, 0) == POLICY_OK);
    struct model_task *one = fork_reserved(model, 10, 40);
    struct model_task *other = fork_reserved(model, 10, 80);
    run_for(model, 240);
    check(model->queues[0].held == 0);
    check(ran(one) + ran(other) == 240);
    check(ran(one) >= 155 && ran(one) <= 165); /* by their parts: two to one */
    model_free(model);
}

static void a_task_is_admitted_where_there_is_room(void)
{
    struct model *model = model_new("edf", 1, 1);
    struct model_task *first = fork_reserved(model, 60, 100);
    struct model_task *second = fork_reserved(model, 50, 100);
    check(is_admitted(first) && !is_admitted(second) && second->task.level == 1);
    run_for(model, 10);
    reserve(model, first, 0, 100); /* its reservation is free */
    run_for(model, 20);
    check(!is_admitted(first) && is_admitted(second));
    model_free(model);
}

static void a_task_moves_to_a_cpu_with_room(void)
{
    struct model *model = model_new("edf", 2, 1);
    struct model_task *first = fork_reserved(model, 60, 100);
    struct model_task *busy = model_fork(model, NULL); /* CPU 1 is not idle */
    struct model_task *second = model_fork(model, first);
    check(first->task.cpu == 0 && busy->task.cpu == 1 && second->task.cpu == 0);
    reserve(model, second, 50, 100);
    run_for(model, 30);
    check(is_admitted(second) && second->task.cpu == 1);
    run_for(model, 970);
    check(ran(first) == 600 && ran(second) >= 450);
    model_free(model);
}

/*
 * A waking task keeps its deadline and runtime if they fit its bandwidth; otherwise it begins a new
 * period.
 */
static void a_task_that_wakes_takes_no_more_than_its_part(void)
{
    struct model *model = model_new("edf", 1, 1);
    struct model_task *task = fork_reserved(model, 10, 40);
    uint64_t deadline = edf_task_of(&task->task)->deadline;
    run_for(model, 4);
    model_block(model, 0);
    model_advance(model, 2 * MS);
    model_wake(model, task); /* 6 ms remain until 34 ms from now: less than a quarter */
    check(edf_task_of(&task->task)->deadline == deadline);
    model_block(model, 0);
    model_advance(model, 20 * MS);
    model_wake(model, task); /* 6 ms remain until 14 ms from now: more than a quarter */
    check(edf_task_of(&task->task)->deadline == model->now + 40 * MS);
    model_free(model);
}

/*
 * Each task always wants to run. Admitted tasks receive their runtime by each deadline (Liu and
 * Layland 1973: on one CPU, if the parts sum to at most one).
 */
static void admitted_tasks_meet_their_deadlines(void)
{
    random_state = 7;
    for (uint32_t round = 0; round < 60; round++) {
        struct model *model = model_new("edf", 1, 1);
        struct model_task *tasks[TASKS_MAX];
        uint64_t period[TASKS_MAX];
        uint64_t runtime[TASKS_MAX];
        for (uint32_t i = 0; i < TASKS_MAX; i++) {
            period[i] = 5 + random_below(60);
            runtime[i] = 1 + random_below(period[i] / 2);
            tasks[i] = fork_reserved(model, runtime[i], period[i]);
        }
        for (uint64_t ms = 1; ms < 400; ms++) {
            run_for(model, 1);
            for (uint32_t i = 0; i < TASKS_MAX; i++) {
                uint64_t least = ms / period[i] * runtime[i];
                check(!is_admitted(tasks[i]) || ran(tasks[i]) >= least);
            }
        }
        model_free(model);
    }
}

static void one_queue_serves_all_cpus(void)
{
    struct model *model = model_new("edf:global", 2, 1);
    struct model_task *tasks[3];
    for (uint32_t i = 0; i < 3; i++)
        tasks[i] = fork_reserved(model, 30, 50);
    run_for(model, 500);
    for (uint32_t i = 0; i < 3; i++)
        check(is_admitted(tasks[i]) && ran(tasks[i]) >= 290 && ran(tasks[i]) <= 300);
    check(!is_admitted(fork_reserved(model, 6, 50))); /* 1.8 of 1.9 are reserved */
    model_free(model);
}

static void a_switch_leaves_none_behind(void)
{
    struct model *model = model_new("edf", 1, 1);
    struct model_task *task = fork_reserved(model, 5, 50);
    model_fork(model, NULL);
    run_for(model, 7);
    check(model->queues[0].held == 1);
    model_switch(model, "edf:global");
    run_for(model, 100);
    check(is_admitted(task) && ran(task) >= 15);
    model_free(model);
}

int main(void)
{
    run_test(the_earliest_deadline_runs);
    run_test(a_budget_is_used_once_in_a_period);
    run_test(what_is_left_goes_to_others);
    run_test(without_throttling_deadlines_are_put_off);
    run_test(a_task_is_admitted_where_there_is_room);
    run_test(a_task_moves_to_a_cpu_with_room);
    run_test(a_task_that_wakes_takes_no_more_than_its_part);
    run_test(admitted_tasks_meet_their_deadlines);
    run_test(one_queue_serves_all_cpus);
    run_test(a_switch_leaves_none_behind);
    return 0;
}
