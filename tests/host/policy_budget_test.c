/* SPDX-License-Identifier: MIT */

/*
 * Tests the timed test policy (tests/linux/policies/budget.c) on an exact machine: its promises,
 * and that its rules hold there. The policy uses these rules to check other hosts.
 */

#include "policy_harness.h"
#include "random.h"

#include "../../policies/support/registry.c"
#include "../linux/policies/budget.c"

const struct policy *const policies[] = {&policy_budget};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

#define MS 1000000ull

static struct model *machine(uint32_t cpus, uint32_t tasks)
{
    struct model *model = model_new("budget", cpus, 1);
    for (uint32_t i = 0; i < tasks; i++)
        model_fork(model, NULL);
    return model;
}

static void check_rules(const struct model *model)
{
    check(STATE_OF(&model->scheduler, struct budget_scheduler)->broken == RULES_MET);
}

static void run_for(struct model *model, uint64_t ms)
{
    model_ticks(model, (uint32_t)(ms * MS / MODEL_TICK_NS));
    check_rules(model);
}

static void a_task_has_its_budget_in_each_period(void)
{
    struct model *model = machine(1, 1);
    struct model_task *task = model->tasks[0];
    run_for(model, 40);
    for (int period = 1; period < 5; period++) {
        check(task->task.run_time == (uint64_t)period * 10 * MS);
        run_for(model, 10);
        check(task->task.run_time == (uint64_t)(period + 1) * 10 * MS);
        check(task->place == MODEL_QUEUED && model->queues[0].held == 1);
        run_for(model, 30);
    }
    model_free(model);
}

static void turns_end_between_ticks(void)
{
    struct model *model = machine(1, 3);
    uint64_t before = model->tasks[1]->task.selections;
    run_for(model, 400);
    for (int i = 0; i < 3; i++)
        check(model->tasks[i]->task.run_time == 100 * MS);
    /* Each period has six time slices of 1.5 ms and one of 1 ms. */
    check(model->tasks[1]->task.selections - before >= 60);
    check(model->tasks[1]->task.selections - before <= 70);
    model_free(model);
}

static void another_weight_is_another_budget_at_once(void)
{
    struct model *model = machine(1, 1);
    struct model_task *task = model->tasks[0];
    run_for(model, 20);
    check(task->place == MODEL_QUEUED);
    model_set_attribute(model, task, MODEL_WEIGHT, 10);
    check(task->place == MODEL_RUNNING);
    uint64_t before = task->task.run_time;
    run_for(model, 400);
    check(task->task.run_time - before == 200 * MS);
    model_free(model);
}

/* After any operation, the rules hold, and no task exceeds its budget. */
static void random_lives_keep_to_the_rules(void)
{
    struct model *model = machine(4, 12);
    for (int step = 0; step < 20000; step++) {
        struct model_task *task = model->tasks[random_below(12)];
        uint32_t cpu = (uint32_t)random_below(4);
        uint32_t act = (uint32_t)random_below(6);
        if (act == 0)
            model_tick(model);
        else if (act == 1)
            model_run_until(model, model->now + random_below(3 * MS));
        else if (act == 2 && model->cpus[cpu].current)
            model_block(model, cpu);
        else if (act == 3 && model->cpus[cpu].current)
            model_yield(model, cpu);
        else if (act == 4 && task->place == MODEL_BLOCKED)
            model_wake(model, task);
        else if (act == 5 && random_below(20) == 0)
            model_set_attribute(model, task, MODEL_WEIGHT, 1 + (uint32_t)random_below(10));
        check_rules(model);
    }
    model_switch(model, "budget");
    check_rules(model);
    model_free(model);
}

int main(void)
{
    run_test(a_task_has_its_budget_in_each_period);
    run_test(turns_end_between_ticks);
    run_test(another_weight_is_another_budget_at_once);
    run_test(random_lives_keep_to_the_rules);
    return 0;
}
