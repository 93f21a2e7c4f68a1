/* SPDX-License-Identifier: MIT */

/* Tests ULE's interactivity score, its history, and the resulting order. */

#include "policy_harness.h"

#include "../../policies/support/registry.c"
#include "../../policies/ule.c"

const struct policy *const policies[] = {&policy_ule};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

#define MS 1000000ull

static struct ule_task *state_of(const struct model_task *task)
{
    return task->task.state;
}

static int64_t score(uint64_t run, uint64_t sleep, int32_t nice)
{
    struct ule_task state = {.run = run * MS, .sleep = sleep * MS};
    struct task task = {.state = &state, .nice = nice};
    return ule_score(&task);
}

static void scores_grow_from_nothing_to_a_hundred(void)
{
    check(score(0, 0, 0) == 0 && score(0, 900, 0) == 0);
    check(score(10, 100, 0) == 5 && score(60, 100, 0) == 30);
    check(score(100, 100, 0) == 50);
    check(score(100, 60, 0) == 70 && score(100, 0, 0) == 100);
    check(score(60, 100, -1) == 29 && score(10, 100, 19) == 24);
}

static void history_is_cut_in_its_proportion(void)
{
    struct ule_task state = {.run = 2000 * MS, .sleep = 6000 * MS};
    ule_forget(&state, 5000 * MS);
    check(state.run == 1000 * MS && state.sleep == 3000 * MS);
    ule_forget(&state, 5000 * MS);
    check(state.run == 1000 * MS);
    state = (struct ule_task){.run = 1ull << 50, .sleep = 3ull << 50};
    ule_forget(&state, 5000 * MS);
    check(state.run == 1000 * MS && state.sleep == 3000 * MS);
}

/* Returns a task that wakes now after a sleep of a second, with two CPU-bound tasks. */
static struct model_task *wake_sleeper(struct model *model)
{
    struct model_task *sleeper = model_fork(model, NULL);
    model_ticks(model, 2);
    model_block(model, 0);
    model_fork(model, NULL);
    model_fork(model, NULL);
    model_ticks(model, 100);
    model_wake(model, sleeper);
    return sleeper;
}

static void a_task_that_sleeps_takes_the_cpu(void)
{
    struct model *model = model_new("ule", 1, 1);
    struct model_task *sleeper = wake_sleeper(model);
    check(sleeper->task.level == 0);
    check(model_running(model, 0) == sleeper->task.pid);
    model_ticks(model, 40); /* 20 and 400 ms of 1,020: no longer interactive */
    check(ule_score(&sleeper->task) > 20);
    model_ticks(model, 30);
    check(sleeper->task.level == 1 && model_running(model, 0) != sleeper->task.pid);
    model_free(model);
}

/* Each task runs once per round, for a complete slice. */
static void others_take_turns(void)
{
    struct model *model = model_new("ule", 1, 1);
    for (int i = 0; i < 3; i++)
        model_fork(model, NULL);
    model_ticks(model, 40);
    model_clear_log(model);
    model_ticks(model, 60);
    check_picks(model, "1 2 3 1 2 3");
    model_free(model);
}

static void a_child_is_soon_known(void)
{
    struct model *model = model_new("ule", 1, 1);
    struct model_task *sleeper = wake_sleeper(model);
    struct model_task *child = model_fork(model, sleeper);
    check(state_of(child)->run + state_of(child)->sleep <= 500 * MS);
    check(ule_score(&child->task) <= ule_score(&sleeper->task) + 1);
    model_free(model);
}

int main(void)
{
    run_test(scores_grow_from_nothing_to_a_hundred);
    run_test(history_is_cut_in_its_proportion);
    run_test(a_task_that_sleeps_takes_the_cpu);
    run_test(others_take_turns);
    run_test(a_child_is_soon_known);
    return 0;
}
