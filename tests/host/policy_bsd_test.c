/* SPDX-License-Identifier: MIT */

/*
 * Tests 4.4BSD's decay-usage scheduling: estcpu, its decay, and the order of execution. A tick is
 * 10 ms here, so that each tick on a CPU counts one.
 */

#include "policy_harness.h"

#include "../../policies/bsd.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_bsd};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

static uint64_t count_of(const struct model_task *task)
{
    return ((const struct bsd_task *)task->task.state)->usage / MODEL_TICK_NS;
}

/*
 * Each second, u = (u + 100) 2 / 3, until u + 100 reaches its limit: then u grows from 170 to 255.
 */
static void a_hog_alone_comes_to_the_limit(void)
{
    struct model *model = model_new("bsd", 1, 1);
    struct model_task *hog = model_fork(model, NULL);
    uint64_t expected[] = {66, 111, 140, 160, 170};
    model_ticks(model, 99);
    check(count_of(hog) == 99);
    for (int second = 0; second < 5; second++) {
        model_ticks(model, 1);
        check(count_of(hog) == expected[second]);
        model_ticks(model, 99);
    }
    check(count_of(hog) == 255);
    check(bsd_priority(&model->scheduler, &hog->task) == 113);
    model_free(model);
}

/* The more tasks compete, the less usage is forgotten. */
static void load_makes_usage_last(void)
{
    uint64_t left[2];
    for (int crowd = 0; crowd < 2; crowd++) {
        struct model *model = model_new("bsd", 1, 1);
        struct model_task *task = model_fork(model, NULL);
        for (int i = 0; i < 8 * crowd; i++)
            model_fork(model, NULL);
        model_ticks(model, 10);
        struct bsd_task *state = task->task.state;
        state->usage = 90 * MODEL_TICK_NS;
        bsd_queue_of(&model->queues[0])->load = (crowd ? 9 : 1) * BSD_LOAD_ONE;
        state->second = 5;
        bsd_queue_of(&model->queues[0])->second = 6;
        bsd_decay(&model->queues[0], &task->task, true);
        left[crowd] = count_of(task);
        model_free(model);
    }
    check(left[0] == 60 && left[1] == 85); /* 2 / 3, 18 / 19 */
}

static void who_slept_goes_first(void)
{
    struct model *model = model_new("bsd", 1, 1);
    struct model_task *sleeper = model_fork(model, NULL);
    struct model_task *hog = model_fork(model, NULL);
    model_block(model, 0);
    model_ticks(model, 90);
    check(model_running(model, 0) == hog->task.pid);
    model_wake(model, sleeper);
    check(model_running(model, 0) == sleeper->task.pid);
    model_ticks(model, 5);
    check(model_running(model, 0) == sleeper->task.pid);
    model_free(model);
}

static void equals_take_turns_of_a_tenth(void)
{
    struct model *model = model_new("bsd", 1, 1);
    model_fork(model, NULL);
    model_fork(model, NULL);
    model_ticks(model, 9);
    model_clear_log(model);
    model_ticks(model, 1);
    check_picks(model, "2");
    model_free(model);
}

static void nice_values_count_twice(void)
{
    struct model *model = model_new("bsd", 1, 1);
    struct model_task *task = model_fork(model, NULL);
    model_set_attribute(model, task, MODEL_NICE, 19);
    check(bsd_priority(&model->scheduler, &task->task) == 88);
    model_ticks(model, 1000);
    check(bsd_priority(&model->scheduler, &task->task) <= 127);
    model_set_attribute(model, task, MODEL_NICE, (uint64_t)-20);
    check(bsd_priority(&model->scheduler, &task->task) >= 50);
    model_free(model);
}

/* After any operation, each task waits in the list of its priority. */
static void lists_are_those_of_priorities(void)
{
    struct model *model = model_new("bsd", 2, 1);
    struct model_task *tasks[6];
    for (int i = 0; i < 6; i++) {
        tasks[i] = model_fork(model, NULL);
        model_set_attribute(model, tasks[i], MODEL_NICE, (uint64_t)(3 * i));
    }
    for (int step = 0; step < 400; step++) {
        model_ticks(model, 7);
        struct model_task *task = tasks[step % 6];
        if (step % 5 == 0 && model->cpus[0].current)
            model_block(model, 0);
        if (task->place == MODEL_BLOCKED)
            model_wake(model, task);
        for (int i = 0; i < 6; i++) {
            const struct bsd_task *state = tasks[i]->task.state;
            if (tasks[i]->place == MODEL_QUEUED)
                check(state->rank == bsd_rank(&model->scheduler, &tasks[i]->task));
        }
    }
    model_free(model);
}

int main(void)
{
    run_test(a_hog_alone_comes_to_the_limit);
    run_test(load_makes_usage_last);
    run_test(who_slept_goes_first);
    run_test(equals_take_turns_of_a_tenth);
    run_test(nice_values_count_twice);
    run_test(lists_are_those_of_priorities);
    return 0;
}
