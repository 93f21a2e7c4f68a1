/* SPDX-License-Identifier: MIT */

/* Tests BORE's burst score, and the resulting shares. */

#include "policy_harness.h"

#include "../../policies/bore.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_bore};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

static struct bore_task *state_of(const struct model_task *task)
{
    return task->task.state;
}

static void scores_follow_the_logarithm_of_a_burst(void)
{
    struct model *model = model_new("bore", 1, 1);
    check(bore_logarithm(0) == 0 && bore_logarithm(1) == 0);
    check(bore_logarithm(1ull << 30) == 30 * BORE_PART);
    check(bore_logarithm(3ull << 29) == 30 * BORE_PART + BORE_PART / 2);
    check(bore_burst_score(&model->scheduler, 4000000) == 0); /* below 2^22 */
    check(bore_burst_score(&model->scheduler, 1ull << 30) == 10 * BORE_PART);
    check(bore_burst_score(&model->scheduler, UINT64_MAX) == 39 * BORE_PART);
    model_free(model);
}

static void hogs_share_alike(void)
{
    struct model *model = model_new("bore", 1, 1);
    struct model_task *tasks[] = {model_fork(model, NULL), model_fork(model, NULL),
                                  model_fork(model, NULL)};
    model_ticks(model, 300);
    for (int i = 0; i < 3; i++)
        check(tasks[i]->task.run_time > 95 * MODEL_TICK_NS);
    model_free(model);
}

/*
 * A task that yields after each tick has short bursts, and a share that is larger by several
 * levels.
 */
static void a_task_that_pauses_has_more(void)
{
    struct model *model = model_new("bore", 1, 1);
    struct model_task *quick = model_fork(model, NULL);
    struct model_task *hog = model_fork(model, NULL);
    for (int i = 0; i < 1000; i++) {
        model_tick(model);
        if (model_running(model, 0) == quick->task.pid)
            model_yield(model, 0);
    }
    check(quick->task.run_time > 4 * hog->task.run_time);
    check(bore_weight(&model->scheduler, &quick->task) >
          4 * bore_weight(&model->scheduler, &hog->task));
    model_free(model);
}

static void one_short_burst_forgives_half(void)
{
    struct model *model = model_new("bore", 1, 1);
    struct model_task *task = model_fork(model, NULL);
    model_ticks(model, 200);
    uint64_t score = bore_score(&model->scheduler, &task->task);
    check(score > 10 * BORE_PART);
    model_block(model, 0);
    check(state_of(task)->burst == 0 && state_of(task)->before == score / 2);
    model_wake(model, task);
    struct model_task *child = model_fork(model, task);
    check(state_of(child)->before == score / 2);
    model_free(model);
}

static void sleep_is_no_credit(void)
{
    struct model *model = model_new("bore", 1, 1);
    struct model_task *sleeper = model_fork(model, NULL);
    model_fork(model, NULL);
    model_block(model, 0);
    model_ticks(model, 500);
    model_wake(model, sleeper);
    uint64_t clock = bore_queue_of(&model->queues[0])->clock;
    check((int64_t)(state_of(sleeper)->time - clock) >= 0);
    model_free(model);
}

int main(void)
{
    run_test(scores_follow_the_logarithm_of_a_burst);
    run_test(hogs_share_alike);
    run_test(a_task_that_pauses_has_more);
    run_test(one_short_burst_forgives_half);
    run_test(sleep_is_no_credit);
    return 0;
}
