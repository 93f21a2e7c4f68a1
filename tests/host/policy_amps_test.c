/* SPDX-License-Identifier: MIT */

/*
 * Tests CPUs of different speeds, and threads that share a core: where tasks are placed, and when
 * they move.
 */

#include "policy_harness.h"

#include "../../policies/amps.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_amps};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

/*
 * Makes a machine of two kinds of CPUs: each CPU's kind and its sibling. All CPUs are in one cache
 * and one node.
 */
static struct model *machine_of(struct machine_shape *shape, uint32_t cpus, const uint16_t *kinds,
                                const uint16_t *siblings)
{
    struct model *model = model_new("amps", cpus, 1);
    shape->nodes = 1;
    shape->kinds = 2;
    shape->kind[0] = (struct cpu_kind){1, {CAPACITY_FULL}};
    shape->kind[1] = (struct cpu_kind){1, {460}};
    for (uint32_t cpu = 0; cpu < cpus; cpu++) {
        shape->cpu[cpu].kind = kinds[cpu];
        shape->cpu[cpu].sibling = siblings[cpu];
        shape->cpu[cpu].core = siblings[cpu] < cpu ? siblings[cpu] : (uint16_t)cpu;
    }
    model->scheduler.shape = shape;
    return model;
}

/* A slow CPU and a fast one. */
static struct model *slow_and_fast(struct machine_shape *shape)
{
    return machine_of(shape, 2, (const uint16_t[]){1, 0}, (const uint16_t[]){0, 1});
}

/* CPUs 0 and 1 are threads of a core, 2 and 3 of another. */
static struct model *two_cores(struct machine_shape *shape)
{
    return machine_of(shape, 4, (const uint16_t[]){0, 0, 0, 0}, (const uint16_t[]){1, 0, 3, 2});
}

static void set(struct model *model, const char *tunable, int64_t value)
{
    check(tunable_set(&model->scheduler, model->policy,
                      tunable_find(model->policy, tunable, strlen(tunable)), value) == POLICY_OK);
}

static void the_fast_cpu_comes_first(void)
{
    struct machine_shape shape = {0};
    struct model *model = slow_and_fast(&shape);
    check(model_fork(model, NULL)->task.cpu == 1);
    check(model_fork(model, NULL)->task.cpu == 0); /* an idle CPU goes before any other */
    model_free(model);
}

/* If speeds do not count, the first CPU is as good as the second. */
static void speeds_may_count_for_nothing(void)
{
    struct machine_shape shape = {0};
    struct model *model = slow_and_fast(&shape);
    set(model, "speeds", 0);
    check(model_fork(model, NULL)->task.cpu == 0);
    model_ticks(model, 3);
    check(model->cpus[0].current && !model->cpus[1].current);
    model_free(model);
}

static void loads_are_in_proportion_to_speeds(void)
{
    struct machine_shape shape = {0};
    struct model *model = slow_and_fast(&shape);
    for (int i = 0; i < 6; i++)
        model_fork(model, NULL);
    model_ticks(model, 20);
    check(model->queues[0].queued == 1 && model->queues[1].queued == 3);
    while (model->queues[1].queued > 0) /* until the slow CPU has more than its part */
        model_end(model, model->cpus[1].current);
    model_ticks(model, 20);
    check(model->queues[0].queued == 0 && model->queues[1].queued == 1);
    model_free(model);
}

/* The task moves at its next tick. With `moves` 0 it stays. */
static void a_task_goes_to_the_fast_cpu_that_has_nothing_to_do(void)
{
    for (int moves = 0; moves <= 1; moves++) {
        struct machine_shape shape = {0};
        struct model *model = slow_and_fast(&shape);
        set(model, "moves", moves);
        struct model_task *first = model_fork(model, NULL);
        struct model_task *second = model_fork(model, NULL);
        model_ticks(model, 3);
        check(second->task.cpu == 0);
        model_end(model, first);
        check(second->task.cpu == 0);
        model_ticks(model, 1);
        check(second->task.cpu == (uint32_t)moves && second->place == MODEL_RUNNING);
        model_free(model);
    }
}

/* If a move gains nothing, no task moves. Otherwise the task would move back at the next tick. */
static void a_task_does_not_change_places_for_nothing(void)
{
    struct machine_shape shape = {0};
    struct model *model = machine_of(&shape, 2, (const uint16_t[]){0, 0}, (const uint16_t[]){0, 1});
    struct model_task *tasks[3];
    for (int i = 0; i < 3; i++)
        tasks[i] = model_fork(model, NULL);
    for (int i = 0; i < 6; i++) {
        model_ticks(model, 1);
        check(tasks[0]->task.cpu == 0 && tasks[1]->task.cpu == 1 && tasks[2]->task.cpu == 0);
    }
    model_free(model);
}

static void a_task_that_loses_its_cpu_goes_on_with_its_turn(void)
{
    struct model *model = model_new("amps", 1, 1);
    struct model_task *first = model_fork(model, NULL);
    model_fork(model, NULL);
    model_set_attribute(model, first, MODEL_PRIORITY, 1);
    check(model_running(model, 0) == first->task.pid);
    model_free(model);
}

static void a_core_that_is_idle_as_a_whole_comes_first(void)
{
    struct machine_shape shape = {0};
    struct model *model = two_cores(&shape);
    struct model_task *tasks[3];
    for (int i = 0; i < 3; i++)
        tasks[i] = model_fork(model, NULL);
    check(tasks[0]->task.cpu == 0 && tasks[1]->task.cpu == 2 && tasks[2]->task.cpu == 1);
    model_end(model, tasks[1]);
    model_ticks(model, 1); /* one of the two on the same core moves away */
    check(tasks[0]->task.cpu == 2 && tasks[2]->task.cpu == 1);
    model_ticks(model, 5); /* and does not return */
    check(tasks[0]->task.cpu == 2 && tasks[2]->task.cpu == 1);
    model_free(model);
}

static void threads_of_a_core_may_count_as_cores(void)
{
    struct machine_shape shape = {0};
    struct model *model = two_cores(&shape);
    set(model, "shared", 100);
    check(model_fork(model, NULL)->task.cpu == 0);
    check(model_fork(model, NULL)->task.cpu == 1);
    model_free(model);
}

int main(void)
{
    run_test(the_fast_cpu_comes_first);
    run_test(speeds_may_count_for_nothing);
    run_test(loads_are_in_proportion_to_speeds);
    run_test(a_task_goes_to_the_fast_cpu_that_has_nothing_to_do);
    run_test(a_task_does_not_change_places_for_nothing);
    run_test(a_task_that_loses_its_cpu_goes_on_with_its_turn);
    run_test(a_core_that_is_idle_as_a_whole_comes_first);
    run_test(threads_of_a_core_may_count_as_cores);
    return 0;
}
