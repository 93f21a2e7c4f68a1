/* SPDX-License-Identifier: MIT */

/* Tests slices of microseconds in one queue: preempted tasks, times and classes. */

#include "policy_harness.h"

#include "../../policies/shinjuku.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_shinjuku};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

#define US      1000ull
#define QUANTUM (1000 * US)

static void a_task_gives_way_when_its_quantum_is_over(void)
{
    struct model *model = model_new("shinjuku", 1, 1);
    struct model_task *one = model_fork(model, NULL);
    model_run_for(model, 300 * US);
    struct model_task *other = model_fork(model, NULL);
    model_run_for(model, 699 * US);
    check(model_running(model, 0) == one->task.pid);
    model_run_for(model, 2 * US);
    check(model_running(model, 0) == other->task.pid);
    model_run_for(model, QUANTUM);
    check(model_running(model, 0) == one->task.pid);
    model_free(model);
}

/* The task had exceeded its quantum while no task waited, so the first arrival preempts it. */
static void a_task_that_ran_alone_gives_way_at_once(void)
{
    struct model *model = model_new("shinjuku", 1, 1);
    model_fork(model, NULL);
    model_clear_log(model);
    model_run_for(model, 50 * QUANTUM);
    check_picks(model, ""); /* it was not interrupted */
    struct model_task *other = model_fork(model, NULL);
    check(model_running(model, 0) == other->task.pid);
    model_free(model);
}

static void the_line_is_served_in_its_order(void)
{
    struct model *model = model_new("shinjuku", 1, 1);
    for (int i = 0; i < 3; i++)
        model_fork(model, NULL);
    model_clear_log(model);
    model_run_for(model, 6 * QUANTUM + US);
    check_picks(model, "2 3 1 2 3 1");
    model_free(model);
}

/* Of several CPUs, the one with the earliest pick is preempted. */
static void the_quantum_that_began_first_ends_first(void)
{
    struct model *model = model_new("shinjuku", 3, 1);
    struct model_task *tasks[3];
    for (int i = 0; i < 3; i++) {
        tasks[i] = model_fork(model, NULL);
        model_run_for(model, 100 * US);
    }
    struct model_task *late = model_fork(model, NULL);
    model_run_for(model, 699 * US);
    check(late->place == MODEL_QUEUED);
    model_run_for(model, 2 * US);
    check(late->place == MODEL_RUNNING && tasks[0]->place == MODEL_QUEUED);
    model_run_for(model, 100 * US);
    check(tasks[0]->place == MODEL_RUNNING && tasks[1]->place == MODEL_QUEUED);
    model_free(model);
}

static void without_a_quantum_a_task_runs_to_its_end(void)
{
    struct model *model = model_new("shinjuku", 1, 1);
    check(tunable_set(&model->scheduler, model->policy, SHINJUKU_QUANTUM, 0) == POLICY_OK);
    struct model_task *one = model_fork(model, NULL);
    struct model_task *other = model_fork(model, NULL);
    model_ticks(model, 20);
    check(model_running(model, 0) == one->task.pid);
    model_end(model, one);
    check(model_running(model, 0) == other->task.pid);
    model_free(model);
}

/* The alarm is still pending when preemption is switched off. */
static void an_alarm_without_a_quantum_rings_once(void)
{
    struct model *model = model_new("shinjuku", 1, 1);
    struct model_task *one = model_fork(model, NULL);
    model_fork(model, NULL);
    check(model->queues[0].alarm > 0);
    check(tunable_set(&model->scheduler, model->policy, SHINJUKU_QUANTUM, 0) == POLICY_OK);
    model_ticks(model, 3);
    check(model->queues[0].alarm == 0 && model_running(model, 0) == one->task.pid);
    model_free(model);
}

static struct model_task *fork_of_class(struct model *model, int priority, uint64_t target)
{
    struct model_task *task = model_fork(model, NULL);
    model_set_attribute(model, task, MODEL_PRIORITY, (uint64_t)priority);
    model_set_attribute(model, task, MODEL_DEADLINE, target);
    return task;
}

/* A class with a fifth of the other's target waits for a fifth of the other's time. */
static void classes_wait_in_proportion_to_their_targets(void)
{
    struct model *model = model_new("shinjuku:targets", 1, 1);
    for (int i = 0; i < 16; i++)
        fork_of_class(model, i % 2 ? 8 : 3, i % 2 ? 5000 * US : 1000 * US);
    uint64_t waits[2] = {0, 0}, turns[2] = {0, 0};
    model_run_for(model, 100 * QUANTUM);
    for (int turn = 0; turn < 600; turn++) {
        struct model_task *running = model->cpus[0].current;
        int class = running->task.priority == 8;
        waits[class] += model->queues[0].remark;
        turns[class]++;
        model_run_for(model, QUANTUM);
    }
    check(turns[0] > 0 && turns[1] > 0);
    double ratio = ((double)waits[1] / (double)turns[1]) / ((double)waits[0] / (double)turns[0]);
    check(ratio > 4.5 && ratio < 5.5);
    model_free(model);
}

int main(void)
{
    run_test(a_task_gives_way_when_its_quantum_is_over);
    run_test(a_task_that_ran_alone_gives_way_at_once);
    run_test(the_line_is_served_in_its_order);
    run_test(the_quantum_that_began_first_ends_first);
    run_test(without_a_quantum_a_task_runs_to_its_end);
    run_test(an_alarm_without_a_quantum_rings_once);
    run_test(classes_wait_in_proportion_to_their_targets);
    return 0;
}
