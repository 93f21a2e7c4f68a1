/* SPDX-License-Identifier: MIT */

/* Tests that levels are strict on one CPU and several, and that tickets decide within a level. */

#include "policy_harness.h"

#include "../../policies/hybrid.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_hybrid};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

static struct model_task *fork_at(struct model *model, int32_t level)
{
    struct model_task *task = model_fork(model, NULL);
    model_set_attribute(model, task, MODEL_PRIORITY, (uint32_t)level);
    return task;
}

static void the_highest_level_runs_alone(void)
{
    struct model *model = model_new("hybrid", 1, 1);
    struct model_task *low = fork_at(model, 7);
    fork_at(model, 3);
    fork_at(model, 3);
    uint64_t before = low->task.run_time;
    model_ticks(model, 500);
    check(low->task.run_time == before);
    check(low->task.level == 7);
    model_free(model);
}

static void tickets_decide_within_a_level(void)
{
    struct model *model = model_new("hybrid", 1, 1);
    fork_at(model, 2);
    struct model_task *three = fork_at(model, 2);
    model_set_attribute(model, three, MODEL_TICKETS, 3);
    fork_at(model, 5);
    uint64_t before = three->task.selections;
    model_ticks(model, 4000);
    uint64_t selections = three->task.selections - before;
    check(selections > 2890 && selections < 3110); /* 3,000, plus four standard deviations */
    model_free(model);
}

static void who_wakes_at_a_higher_level_runs_at_once(void)
{
    struct model *model = model_new("hybrid", 1, 1);
    struct model_task *high = fork_at(model, 1);
    fork_at(model, 4);
    model_ticks(model, 2);
    check(model->cpus[0].current == high);
    model_block(model, 0);
    model_ticks(model, 5);
    check(model->cpus[0].current != high);
    model_wake(model, high);
    check(model->cpus[0].current == high);
    model_set_attribute(model, high, MODEL_PRIORITY, 9);
    check(model->cpus[0].current != high);
    model_free(model);
}

static void levels_are_strict_over_all_cpus(void)
{
    for (uint32_t cpus = 2; cpus <= 8; cpus++) {
        struct model *model = model_new("hybrid", cpus, cpus);
        for (uint32_t i = 0; i < 3 * cpus; i++)
            fork_at(model, (int32_t)(7 * i % LEVELS));
        model_ticks(model, 10);
        for (uint32_t i = 0; i < 200; i++) {
            int32_t lowest_running = 0;
            int32_t highest_waiting = PRIORITY_LOWEST;
            model_tick(model);
            for (uint32_t j = 0; j < model->task_count; j++) {
                int32_t level = model->tasks[j]->task.priority;
                if (model->tasks[j]->place == MODEL_RUNNING)
                    lowest_running = level > lowest_running ? level : lowest_running;
                else
                    highest_waiting = level < highest_waiting ? level : highest_waiting;
            }
            check(lowest_running <= highest_waiting);
        }
        model_free(model);
    }
}

static void a_task_goes_where_it_can_run(void)
{
    struct model *model = model_new("hybrid", 3, 1);
    struct model_task *sleeper = fork_at(model, 2);
    check(sleeper->task.cpu == 0);
    fork_at(model, 1);
    fork_at(model, 6);
    model_block(model, 0);
    model_set_attribute(model, model_fork(model, NULL), MODEL_PRIORITY, 1);
    check(model->cpus[0].current && model->cpus[1].current && model->cpus[2].current);
    model_wake(model, sleeper); /* CPUs 0 and 1 run level 1 */
    check(model->cpus[2].current == sleeper);
    model_free(model);
}

static void check_bitmaps(const struct model *model)
{
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        const struct hybrid_queue *queue = model->queues[cpu].state;
        uint64_t count = 0;
        for (uint32_t level = 0; level < LEVELS; level++) {
            check((queue->counts.occupied >> level & 1) == (queue->level[level].count > 0));
            check(queue->counts.waiting[level] == queue->level[level].count);
            check((queue->level[level].root != NULL) == (queue->level[level].count > 0));
            count += queue->level[level].count;
        }
        check(count == model->queues[cpu].queued);
        check((queue->counts.running != NO_RANK) == (model->queues[cpu].running > 0));
    }
}

static void the_bitmap_tells_where_tasks_wait(void)
{
    struct model *model = model_new("hybrid", 3, 1);
    for (uint32_t i = 0; i < 400; i++) {
        if (i % 5 == 0)
            fork_at(model, (int32_t)(i / 5 % LEVELS));
        if (i % 7 == 0 && model->cpus[i % 3].current)
            model_sleep(model, i % 3, i % 11);
        if (i % 9 == 0 && model->cpus[i % 3].current)
            model_end(model, model->cpus[i % 3].current);
        model_tick(model);
        check_bitmaps(model);
    }
    model_free(model);
}

int main(void)
{
    run_test(the_highest_level_runs_alone);
    run_test(tickets_decide_within_a_level);
    run_test(who_wakes_at_a_higher_level_runs_at_once);
    run_test(levels_are_strict_over_all_cpus);
    run_test(a_task_goes_where_it_can_run);
    run_test(the_bitmap_tells_where_tasks_wait);
    return 0;
}
