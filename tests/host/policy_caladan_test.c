/* SPDX-License-Identifier: MIT */

/* Tests the cores of applications: which application receives a core, when, and which loses it. */

#include "policy_harness.h"
#include "random.h"

#include "../../policies/caladan.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_caladan};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

#define US   1000ull
#define LOOK (10 * US)

static struct model_task *fork_batch(struct model *model)
{
    struct model_task *task = model_fork(model, NULL);
    model_set_attribute(model, task, MODEL_NICE, 19);
    return task;
}

static struct model_task *fork_in_group(struct model *model, uint32_t group)
{
    struct model_task *task = model_fork(model, NULL);
    model_set_attribute(model, task, (enum model_attribute)ATTRIBUTE_TASKGROUP, group);
    return task;
}

static void set_weight(struct model *model, uint32_t group, uint32_t weight)
{
    model->scheduler.group[group] = (struct share_group){.weight = weight};
    if (model->scheduler.groups <= group)
        model->scheduler.groups = group + 1;
}

/* An application without a core does not wait for the next check. */
static void an_application_without_a_core_has_a_best_effort_one_at_once(void)
{
    struct model *model = model_new("caladan", 2, 1);
    struct model_task *batch[2] = {fork_batch(model), fork_batch(model)};
    model_run_for(model, 5 * LOOK);
    check(batch[0]->place == MODEL_RUNNING && batch[1]->place == MODEL_RUNNING);
    struct model_task *request = model_fork(model, NULL);
    check(request->place == MODEL_RUNNING);
    check((batch[0]->place == MODEL_RUNNING) + (batch[1]->place == MODEL_RUNNING) == 1);
    model_end(model, request);
    model_run_for(model, 3 * LOOK);
    check(batch[0]->place == MODEL_RUNNING && batch[1]->place == MODEL_RUNNING);
    model_free(model);
}

/*
 * An application receives another core at the first check that finds the same waiting task as the
 * previous check.
 */
static void a_task_that_has_waited_from_look_to_look_has_another_core(void)
{
    struct model *model = model_new("caladan", 3, 1);
    fork_batch(model);
    fork_batch(model);
    model_fork(model, NULL);
    model_run_for(model, 5 * LOOK + 3 * US);
    struct model_task *late = model_fork(model, NULL); /* 3 us after a check */
    model_run_for(model, 16 * US);
    check(late->place == MODEL_QUEUED);
    model_run_for(model, 2 * US);
    check(late->place == MODEL_RUNNING);
    model_free(model);
}

/* Each check grants one core, regardless of the number of waiting tasks. */
static void a_look_grants_an_application_one_core(void)
{
    struct model *model = model_new("caladan", 8, 1);
    for (int i = 0; i < 8; i++)
        fork_batch(model);
    model_run_for(model, 100 * LOOK);
    for (int i = 0; i < 6; i++)
        model_fork(model, NULL);
    const struct caladan_kind *kinds = caladan_of(&model->queues[0])->kind;
    check(kinds[LATENCY_CRITICAL].cores == 1 && kinds[BEST_EFFORT].cores == 7);
    model_run_for(model, LOOK + 2 * US);
    for (uint32_t cores = 2; cores <= 6; cores++) {
        check(kinds[LATENCY_CRITICAL].cores == cores);
        check(kinds[BEST_EFFORT].cores == 8 - cores);
        model_run_for(model, LOOK);
    }
    check(kinds[LATENCY_CRITICAL].cores == 6 && kinds[BEST_EFFORT].cores == 2);
    model_free(model);
}

/* An application keeps its core while one of its tasks waits; then the core goes to others. */
static void a_core_runs_the_tasks_of_its_application(void)
{
    struct model *model = model_new("caladan", 1, 1);
    struct model_task *first = fork_in_group(model, 1);
    struct model_task *second = fork_in_group(model, 1);
    struct model_task *other = fork_in_group(model, 2);
    set_weight(model, 2, 50); /* guarantees it less than one core */
    model_run_for(model, 10 * US);
    check(first->place == MODEL_RUNNING);
    model_end(model, first);
    check(second->place == MODEL_RUNNING && other->place == MODEL_QUEUED);
    model_end(model, second);
    check(other->place == MODEL_RUNNING);
    model_free(model);
}

/* Guaranteed cores are taken from the application that exceeds its guarantee. */
static void guaranteed_cores_are_taken_from_burstable_ones(void)
{
    struct model *model = model_new("caladan", 4, 1);
    set_weight(model, 1, 100);
    set_weight(model, 2, 200);
    struct model_task *parent = fork_in_group(model, 2);
    for (int i = 0; i < 4; i++)
        fork_in_group(model, 1);
    model_run_for(model, 20 * LOOK);
    check(caladan_application(&model->queues[0], 1)->cores == 3);
    for (int i = 0; i < 3; i++)
        model_fork(model, parent);
    model_run_for(model, LOOK - US);
    check(caladan_application(&model->queues[0], 2)->cores == 1);
    model_run_for(model, 20 * LOOK);
    check(caladan_application(&model->queues[0], 1)->cores == 2);
    check(caladan_application(&model->queues[0], 2)->cores == 2);
    model_free(model);
}

static void without_preemption_a_batch_keeps_its_core_for_its_turn(void)
{
    struct model *model = model_new("caladan:no-preemption", 1, 1);
    struct model_task *batch = fork_batch(model);
    model_run_for(model, 3 * LOOK);
    struct model_task *request = model_fork(model, NULL);
    model_run_for(model, 50 * LOOK);
    check(batch->place == MODEL_RUNNING && request->place == MODEL_QUEUED);
    model_ticks(model, 1);
    check(request->place == MODEL_RUNNING);
    model_free(model);
}

/* This holds even if one of its time slices ends earlier at the same tick. */
static void a_turn_that_ends_takes_no_core_from_its_application(void)
{
    struct model *model = model_new("caladan:no-preemption", 3, 1);
    const struct caladan_kind *kinds = caladan_of(&model->queues[0])->kind;
    struct model_task *first = model_fork(model, NULL);
    for (int i = 0; i < 2; i++)
        fork_batch(model);
    model_run_for(model, 5 * LOOK);
    check(first->task.cpu == 0 && kinds[BEST_EFFORT].cores == 2);
    for (int i = 0; i < 3; i++)
        model_fork(model, NULL);
    model_ticks(model, 1);
    check(kinds[LATENCY_CRITICAL].cores == 2);
    model_ticks(model, 1);
    check(kinds[LATENCY_CRITICAL].cores == 3);
    model_free(model);
}

static void cores_that_are_divided_stay_idle(void)
{
    struct model *model = model_new("caladan", 4, 1);
    check(tunable_set(&model->scheduler, model->policy, CALADAN_STATIC, 50) == POLICY_OK);
    for (int i = 0; i < 4; i++)
        fork_batch(model);
    model_run_for(model, 20 * LOOK);
    check(caladan_of(&model->queues[0])->kind[BEST_EFFORT].cores == 2);
    for (int i = 0; i < 4; i++)
        model_fork(model, NULL);
    model_run_for(model, 20 * LOOK);
    check(caladan_of(&model->queues[0])->kind[LATENCY_CRITICAL].cores == 2);
    check(caladan_of(&model->queues[0])->kind[BEST_EFFORT].cores == 2);
    model_free(model);
}

static void a_turn_is_a_tick_where_another_task_waits(void)
{
    struct model *model = model_new("caladan", 1, 1);
    for (int i = 0; i < 3; i++)
        model_fork(model, NULL);
    model_clear_log(model);
    model_ticks(model, 6);
    check_picks(model, "2 3 1 2 3 1");
    model_free(model);
}

static void a_latency_critical_task_that_becomes_a_batch_gives_way(void)
{
    struct model *model = model_new("caladan", 1, 1);
    struct model_task *one = model_fork(model, NULL);
    struct model_task *other = model_fork(model, NULL);
    model_set_attribute(model, one, MODEL_NICE, 5);
    model_run_for(model, 3 * LOOK);
    check(other->place == MODEL_RUNNING && one->place == MODEL_QUEUED);
    model_ticks(model, 20);
    check(other->place == MODEL_RUNNING);
    model_free(model);
}

/* ---- random operations ---- */

#define TASKS  12
#define GROUPS 4

static void check_kind(const struct model *model, uint32_t number)
{
    const struct run_queue *queue = &model->queues[0];
    const struct caladan_kind *kind = &caladan_of(queue)->kind[number];
    uint32_t cores[APPLICATIONS] = {0};
    uint32_t all = 0;
    for (uint32_t i = 0; i < model->task_count; i++) {
        const struct model_task *task = model->tasks[i];
        if (task->place != MODEL_RUNNING || !model_knows(model, task))
            continue;
        uint32_t application_state = STATE_OF(&task->task, struct caladan_task)->application;
        cores[application_state]++;
        all += application_state / GROUPS_MAX == number;
    }
    check(kind->cores == all && kind->grants == (uint32_t)__builtin_popcount(kind->granted));
    check((kind->granted & ~kind->waiting) == 0);
    for (uint32_t i = number * GROUPS_MAX; i < (number + 1) * GROUPS_MAX; i++) {
        const struct caladan_application *application_state = caladan_application(queue, i);
        check(application_state->cores == cores[i]);
        check(!application_state->line.first == !(kind->waiting & caladan_bit(i)));
    }
}

static void act(struct model *model, struct model_task **tasks)
{
    struct model_task *task = tasks[random_below(TASKS)];
    uint32_t cpu = (uint32_t)random_below(model->scheduler.cpus);
    switch (random_below(7)) {
    case 0:
        if (model->cpus[cpu].current)
            model_block(model, cpu);
        break;
    case 1:
    case 2:
        if (task->place == MODEL_BLOCKED)
            model_wake(model, task);
        break;
    case 3:
        model_set_attribute(model, task, MODEL_NICE, random_below(3) * 5);
        break;
    case 4:
        model_set_attribute(model, task, (enum model_attribute)ATTRIBUTE_TASKGROUP,
                            random_below(GROUPS + 2));
        break;
    case 5:
        set_weight(model, 1 + (uint32_t)random_below(GROUPS), 50 * (uint32_t)random_below(8) + 1);
        break;
    default:
        model_run_for(model, random_below(9 * LOOK));
    }
}

/* Returns whether a best-effort task runs, if no core is divided. */
static bool batch_runs(const struct model *model)
{
    return caladan_of(&model->queues[0])->kind[BEST_EFFORT].cores > 0;
}

static void whatever_happens_counts_are_right(void)
{
    static const char *const choices[] = {"caladan", "caladan:no-preemption"};
    for (uint32_t trial = 0; trial < 12; trial++) {
        struct model *model = model_new(choices[trial % 2], 1 + trial % 5, 1);
        struct model_task *tasks[TASKS];
        bool divided = trial % 3 == 2;
        if (divided)
            check(tunable_set(&model->scheduler, model->policy, CALADAN_STATIC, 50) == POLICY_OK);
        for (int i = 0; i < TASKS; i++)
            tasks[i] = model_fork(model, NULL);
        for (int step = 0; step < 1000; step++) {
            act(model, tasks);
            check_kind(model, LATENCY_CRITICAL);
            check_kind(model, BEST_EFFORT);
            if (step % 500 == 499 && !divided)
                model_switch(model, choices[trial % 2]);
        }
        model_run_for(model, (TASKS + 2) * LOOK);
        uint32_t waits = caladan_of(&model->queues[0])->kind[LATENCY_CRITICAL].waiting;
        check(trial % 2 > 0 || divided || !waits || !batch_runs(model));
        model_free(model);
    }
}

int main(void)
{
    run_test(an_application_without_a_core_has_a_best_effort_one_at_once);
    run_test(a_task_that_has_waited_from_look_to_look_has_another_core);
    run_test(a_look_grants_an_application_one_core);
    run_test(a_core_runs_the_tasks_of_its_application);
    run_test(guaranteed_cores_are_taken_from_burstable_ones);
    run_test(without_preemption_a_batch_keeps_its_core_for_its_turn);
    run_test(a_turn_that_ends_takes_no_core_from_its_application);
    run_test(cores_that_are_divided_stay_idle);
    run_test(a_turn_is_a_tick_where_another_task_waits);
    run_test(a_latency_critical_task_that_becomes_a_batch_gives_way);
    run_test(whatever_happens_counts_are_right);
    return 0;
}
