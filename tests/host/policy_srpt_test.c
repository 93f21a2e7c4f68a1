/* SPDX-License-Identifier: MIT */

/* Tests shortest remaining processing time: the order of execution by the known work. */

#include "policy_harness.h"

#include "../../policies/srpt.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_srpt};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

#define TICK MODEL_TICK_NS

static struct model_task *fork_with_runtime(struct model *model, uint64_t ticks)
{
    struct model_task *task = model_fork(model, NULL);
    model_set_attribute(model, task, MODEL_RUNTIME, ticks * TICK);
    return task;
}

static struct model *model_with(const char *policy, const char *tunable, int64_t value)
{
    struct model *model = model_new(policy, 1, 1);
    uint32_t index = tunable_find(model->policy, tunable, strlen(tunable));
    check(tunable_set(&model->scheduler, model->policy, index, value) == POLICY_OK);
    return model;
}

static void the_least_work_left_runs(void)
{
    struct model *model = model_new("srpt", 1, 1);
    struct model_task *long_one = fork_with_runtime(model, 10);
    model_ticks(model, 3);
    struct model_task *middle = fork_with_runtime(model, 8);
    check(model_running(model, 0) == long_one->task.pid); /* 7 remain */
    struct model_task *short_one = fork_with_runtime(model, 6);
    check(model_running(model, 0) == short_one->task.pid);
    model_ticks(model, 6);
    model_end(model, short_one);
    check(model_running(model, 0) == long_one->task.pid);
    model_ticks(model, 7);
    model_end(model, long_one);
    check(model_running(model, 0) == middle->task.pid);
    model_free(model);
}

static void on_several_cpus_the_longest_gives_way(void)
{
    struct model *model = model_new("srpt", 2, 1);
    struct model_task *tasks[] = {fork_with_runtime(model, 9), fork_with_runtime(model, 20),
                                  fork_with_runtime(model, 5)};
    check(tasks[1]->place == MODEL_QUEUED);
    check(tasks[0]->place == MODEL_RUNNING && tasks[2]->place == MODEL_RUNNING);
    model_free(model);
}

static void what_is_told_runs_to_its_end_without_preemption(void)
{
    struct model *model = model_new("srpt:sjf", 1, 1);
    struct model_task *long_one = fork_with_runtime(model, 10);
    struct model_task *short_one = fork_with_runtime(model, 1);
    model_ticks(model, 9);
    check(model_running(model, 0) == long_one->task.pid);
    model_end(model, long_one);
    check(model_running(model, 0) == short_one->task.pid);
    model_free(model);
}

/* Of tasks with unknown work, the task with the least run time runs from the next tick. */
static void what_is_unknown_takes_turns(void)
{
    struct model *model = model_with("srpt", "knows", KNOWS_NOTHING);
    struct model_task *one = fork_with_runtime(model, 1);
    model_ticks(model, 4);
    struct model_task *other = fork_with_runtime(model, 9);
    model_ticks(model, 1);
    check(one->task.run_time == 5 * TICK && model_running(model, 0) == other->task.pid);
    model_ticks(model, 5);
    check(other->task.run_time == 5 * TICK);
    model_ticks(model, 6);
    check(one->task.run_time == 8 * TICK && other->task.run_time == 8 * TICK);
    model_free(model);
}

/*
 * A task that exceeds its announced work waits as if its remaining work equalled its work so far.
 */
static void work_that_is_not_over_goes_on_behind(void)
{
    struct model *model = model_new("srpt", 1, 1);
    struct model_task *late = fork_with_runtime(model, 2);
    struct model_task *other = fork_with_runtime(model, 3);
    model_ticks(model, 5);
    check(late->task.run_time == 4 * TICK && other->task.run_time == TICK);
    model_free(model);
}

static void a_piece_that_is_done_is_followed_by_another(void)
{
    struct model *model = model_new("srpt", 1, 1);
    struct model_task *task = fork_with_runtime(model, 4);
    struct srpt_task *state = task->task.state;
    model_ticks(model, 1);
    model_block(model, 0);
    model_wake(model, task);
    check(state->node.key == 3 * TICK); /* it waited in the middle of its work */
    model_ticks(model, 3);
    model_block(model, 0);
    model_wake(model, task);
    check(state->node.key == 4 * TICK);
    model_free(model);
}

static void bursts_are_foreseen_by_their_average(void)
{
    struct model *model = model_with("srpt:average", "alpha", 25);
    struct model_task *task = model_fork(model, NULL);
    uint64_t expected[] = {4 * TICK, 5 * TICK, 5 * TICK - TICK / 4};
    uint32_t bursts[] = {4, 8, 4};
    for (int i = 0; i < 3; i++) {
        model_ticks(model, bursts[i]);
        model_block(model, 0);
        model_wake(model, task);
        check(((struct srpt_task *)task->task.state)->expected == expected[i]);
    }
    model_free(model);
}

static void errors_are_as_large_as_is_said(void)
{
    struct model *model = model_with("srpt", "error", 400);
    uint32_t above = 0, far = 0;
    for (int i = 0; i < 200; i++) {
        struct model_task *task = fork_with_runtime(model, 100);
        uint64_t expected = ((struct srpt_task *)task->task.state)->expected;
        check(expected >= 25 * TICK && expected <= 400 * TICK);
        above += expected > 100 * TICK;
        far += expected > 250 * TICK || expected < 40 * TICK;
    }
    check(above > 70 && above < 130 && far > 70 && far < 130);
    model_free(model);
}

int main(void)
{
    run_test(the_least_work_left_runs);
    run_test(on_several_cpus_the_longest_gives_way);
    run_test(what_is_told_runs_to_its_end_without_preemption);
    run_test(what_is_unknown_takes_turns);
    run_test(work_that_is_not_over_goes_on_behind);
    run_test(a_piece_that_is_done_is_followed_by_another);
    run_test(bursts_are_foreseen_by_their_average);
    run_test(errors_are_as_large_as_is_said);
    return 0;
}
