/* SPDX-License-Identifier: MIT */

/*
 * Tests hierarchical start-time fair queueing: shares of nested groups, the source's proven bound,
 * quotas exact to the nanosecond, and changes of tasks and groups.
 */

#include "fair_policies.h"

#include "../../policies/hsfq.c"
#include "../../policies/support/groups.h"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_hsfq};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

#define MS        1000000ll
#define US        1000ll
#define SLICE     (3 * MS)
#define TASKS_MAX 12
#define GROUPS    8

static void set_group(struct model *model, uint32_t group, enum group_field field, int64_t value)
{
    check(group_value_allowed(group, field, value));
    group_set(&model->scheduler, group, field, value);
}

static struct model_task *fork_into(struct model *model, uint32_t group)
{
    struct model_task *task = model_fork(model, NULL);
    model_set_attribute(model, task, (enum model_attribute)ATTRIBUTE_TASKGROUP, group);
    return task;
}

static bool is_within(const struct model *model, uint32_t group, uint32_t above)
{
    while (group > above)
        group = model->scheduler.group[group].parent;
    return group == above;
}

/* Returns the run time of all tasks in a group and its subgroups. */
static int64_t group_ran(struct model *model, uint32_t group)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < model->task_count; i++) {
        const struct model_task *task = model->tasks[i];
        if (is_within(model, task->task.group, group))
            sum += ran(model, task);
    }
    return sum;
}

static bool is_near(int64_t number, int64_t due, int64_t by)
{
    return size(number - due) <= by;
}

/* ---- shares ---- */

/* Two users receive the same time, with one process or nine. */
static void users_share_whatever_they_run(void)
{
    struct model *model = model_new("hsfq", 1, 1);
    set_group(model, 2, GROUP_WEIGHT, 100);
    fork_into(model, 1);
    for (int i = 0; i < 9; i++)
        fork_into(model, 2);
    run_for(model, 6000 * MS);
    check(is_near(group_ran(model, 1), 3000 * MS, SLICE));
    for (uint32_t i = 1; i < 10; i++)
        check(is_near(ran(model, model->tasks[i]), 3000 * MS / 9, 2 * SLICE));
    model_free(model);
}

/*
 * Of 7 s, the root's task with nice 0, which counts 100, receives 1 s, and group 1, of weight 600,
 * receives 6 s. In group 1, the weights 1000 (group 2), 400 (group 3) and 100 (its own task) give 4
 * s, 1.6 s and 0.4 s. In group 3, group 4 and the group's own task have a half each.
 */
static void weights_count_level_by_level(void)
{
    struct model *model = model_new("hsfq", 1, 1);
    set_group(model, 1, GROUP_WEIGHT, 600);
    set_group(model, 2, GROUP_PARENT, 1);
    set_group(model, 2, GROUP_WEIGHT, 1000);
    set_group(model, 3, GROUP_PARENT, 1);
    set_group(model, 3, GROUP_WEIGHT, 400);
    set_group(model, 4, GROUP_PARENT, 3);
    struct model_task *lone = fork_into(model, 0);
    fork_into(model, 2);
    struct model_task *direct = fork_into(model, 1);
    fork_into(model, 4);
    struct model_task *other = fork_into(model, 3);
    run_for(model, 7000 * MS);
    check(is_near(ran(model, lone), 1000 * MS, SLICE));
    check(is_near(group_ran(model, 1), 6000 * MS, SLICE));
    check(is_near(group_ran(model, 2), 4000 * MS, 2 * SLICE));
    check(is_near(ran(model, direct), 400 * MS, 2 * SLICE));
    check(is_near(group_ran(model, 4), 800 * MS, 2 * SLICE));
    check(is_near(ran(model, other), 800 * MS, 2 * SLICE));
    model_free(model);
}

/* Unused weight goes to the other tasks, first to those in the same group. */
static void what_a_sleeper_leaves_stays_in_its_group(void)
{
    struct model *model = model_new("hsfq", 1, 1);
    set_group(model, 2, GROUP_WEIGHT, 100);
    struct model_task *sleeper = fork_into(model, 1);
    struct model_task *awake = fork_into(model, 1);
    struct model_task *other = fork_into(model, 2);
    while (model->cpus[0].current != sleeper)
        run_for(model, MS);
    model_block(model, 0);
    int64_t before = ran(model, awake), other_before = ran(model, other);
    run_for(model, 1000 * MS);
    check(is_near(ran(model, awake) - before, 500 * MS, 2 * SLICE));
    check(is_near(ran(model, other) - other_before, 500 * MS, 2 * SLICE));
    model_wake(model, sleeper); /* its sleep earned no credit */
    before = ran(model, sleeper);
    run_for(model, 400 * MS);
    check(is_near(ran(model, sleeper) - before, 100 * MS, 2 * SLICE));
    model_free(model);
}

static void draw_tree(struct model *model)
{
    for (uint32_t i = 1; i < GROUPS; i++) {
        set_group(model, i, GROUP_PARENT, (int64_t)random_below(i));
        set_group(model, i, GROUP_WEIGHT, 1 + (int64_t)random_below(1000));
    }
}

static uint64_t weight_of(const struct model *model, uint32_t group)
{
    return (uint64_t)model->scheduler.group[group].weight * HSFQ_GROUP_UNIT;
}

/* Compares two sibling groups that always want the CPU, relative to their weights. */
static void check_bound(struct model *model, uint32_t one, uint32_t other, const int64_t *before)
{
    double had = (double)(group_ran(model, one) - before[one]) / (double)weight_of(model, one);
    double other_had =
        (double)(group_ran(model, other) - before[other]) / (double)weight_of(model, other);
    double slices = (double)SLICE / (double)weight_of(model, one) +
                    (double)SLICE / (double)weight_of(model, other);
    double ahead = had - other_had;
    check((ahead < 0 ? -ahead : ahead) <= slices * 1.001);
}

/*
 * Over any interval, no sibling is ahead of another by more than a slice of each (Goyal, Guo and
 * Vin 1996, theorem 1), at every level of any tree.
 */
static void no_group_is_ahead_by_more_than_slices(void)
{
    for (int trial = 0; trial < 10; trial++) {
        struct model *model = model_new("hsfq", 1, 1);
        int64_t before[GROUPS] = {0};
        draw_tree(model);
        for (uint32_t i = 1; i < GROUPS; i++)
            fork_into(model, i);
        run_for(model, 500 * MS);
        for (uint32_t i = 1; i < GROUPS; i++)
            before[i] = group_ran(model, i);
        for (int step = 0; step < 200; step++) {
            run_for(model, 1 + (int64_t)random_below(20000) * US);
            for (uint32_t one = 1; one < GROUPS; one++) {
                for (uint32_t other = 1; other < one; other++) {
                    if (model->scheduler.group[one].parent == model->scheduler.group[other].parent)
                        check_bound(model, one, other, before);
                }
            }
        }
        model_free(model);
    }
}

/* ---- limits ---- */

/* In each period, the group receives exactly its quota, even if the CPU is idle afterwards. */
static void a_quota_is_exact_by_a_timer(void)
{
    struct model *model = model_new("hsfq", 1, 1);
    set_group(model, 1, GROUP_QUOTA, 7500 * US);
    set_group(model, 1, GROUP_PERIOD, 25 * MS);
    fork_into(model, 1);
    fork_into(model, 1);
    run_for(model, 25 * MS);
    for (int period = 1; period < 40; period++) {
        check(group_ran(model, 1) == period * 7500 * US);
        run_for(model, 7501 * US);
        check(model->cpus[0].current == NULL && model->queues[0].held == 2);
        run_for(model, 17499 * US);
    }
    model_free(model);
}

/* The overrun of a late slice is deducted later: on average the quota is exact. */
static void a_quota_is_exact_within_a_tick_without_one(void)
{
    struct model *model = model_new("hsfq:ticks", 1, 1);
    set_group(model, 1, GROUP_QUOTA, 25 * MS);
    fork_into(model, 1);
    for (int period = 1; period < 40; period++) {
        run_for(model, 100 * MS);
        check(is_near(group_ran(model, 1), period * 25 * MS, (int64_t)MODEL_TICK_NS));
    }
    model_free(model);
}

/*
 * The smallest quota of a group and its ancestors applies; other tasks receive the remaining time.
 */
static void quotas_hold_for_all_below(void)
{
    struct model *model = model_new("hsfq", 1, 1);
    set_group(model, 1, GROUP_QUOTA, 30 * MS);
    set_group(model, 2, GROUP_PARENT, 1);
    set_group(model, 3, GROUP_PARENT, 1);
    set_group(model, 3, GROUP_QUOTA, 5 * MS);
    fork_into(model, 2);
    fork_into(model, 3);
    struct model_task *free = fork_into(model, 0);
    run_for(model, 2000 * MS);
    check(group_ran(model, 1) == 600 * MS && group_ran(model, 3) == 100 * MS);
    check(ran(model, free) == 1400 * MS);
    model_free(model);
}

static void quotas_can_be_passed_over(void)
{
    struct model *model = model_new("hsfq:unlimited", 1, 1);
    set_group(model, 1, GROUP_QUOTA, 5 * MS);
    fork_into(model, 1);
    run_for(model, 500 * MS);
    check(group_ran(model, 1) == 500 * MS);
    model_free(model);
}

/*
 * A quota covers all CPUs together. No period exceeds it. With enough work, a period falls short by
 * at most the slices that other CPUs had reserved and returned.
 */
static void a_quota_is_one_for_all_cpus(void)
{
    struct model *model = model_new("hsfq", 4, 1);
    set_group(model, 1, GROUP_QUOTA, 90 * MS);
    for (int i = 0; i < 6; i++)
        fork_into(model, 1);
    run_for(model, 100 * MS);
    for (int period = 1; period < 20; period++) {
        int64_t before = group_ran(model, 1);
        run_for(model, 100 * MS);
        int64_t had = group_ran(model, 1) - before;
        check(had <= 90 * MS && had >= 90 * MS - 3 * SLICE);
    }
    model_free(model);
}

/* ---- several CPUs ---- */

/* On each CPU, a group counts by its tasks there; in total, the shares follow the weights. */
static void groups_share_several_cpus(void)
{
    struct model *model = model_new("hsfq", 4, 1);
    set_group(model, 1, GROUP_WEIGHT, 300);
    set_group(model, 2, GROUP_WEIGHT, 100);
    for (int i = 0; i < 16; i++)
        fork_into(model, 1 + (uint32_t)i % 2);
    run_for(model, 2000 * MS);
    int64_t before = group_ran(model, 1), other = group_ran(model, 2);
    run_for(model, 8000 * MS);
    check(is_near(group_ran(model, 1) - before, 24000 * MS, 480 * MS));
    check(is_near(group_ran(model, 2) - other, 8000 * MS, 480 * MS));
    model_free(model);
}

/* ---- changes ---- */

static void one_that_wakes_preempts_one_that_has_had_more(void)
{
    struct model *model = model_new("hsfq", 1, 1);
    set_group(model, 2, GROUP_WEIGHT, 100);
    struct model_task *sleeper = fork_into(model, 1);
    model_block(model, 0);
    struct model_task *hog = fork_into(model, 2);
    run_for(model, 6 * SLICE + 900 * US);
    model_wake(model, sleeper);
    check(model->cpus[0].current == hog); /* in the first millisecond of a slice */
    run_for(model, SLICE);
    check(model->cpus[0].current == sleeper);
    model_block(model, 0);
    run_for(model, 6 * SLICE + 1100 * US);
    model_wake(model, sleeper);
    check(model->cpus[0].current == sleeper);
    model_free(model);
}

static void changes_count_from_then_on(void)
{
    struct model *model = model_new("hsfq", 1, 1);
    set_group(model, 2, GROUP_WEIGHT, 100);
    struct model_task *mover = fork_into(model, 1);
    fork_into(model, 1);
    fork_into(model, 2);
    run_for(model, 1000 * MS);
    set_group(model, 1, GROUP_WEIGHT, 300);
    int64_t before = group_ran(model, 1);
    run_for(model, 1000 * MS);
    check(is_near(group_ran(model, 1) - before, 750 * MS, 3 * SLICE));
    before = ran(model, mover);
    model_set_attribute(model, mover, (enum model_attribute)ATTRIBUTE_TASKGROUP, 2);
    run_for(model, 1000 * MS);
    check(is_near(ran(model, mover) - before, 125 * MS, 3 * SLICE));
    set_group(model, 1, GROUP_QUOTA, 10 * MS);
    run_for(model, 100 * MS);
    int64_t rest = group_ran(model, 1);
    run_for(model, 1000 * MS);
    check(group_ran(model, 1) - rest == 100 * MS);
    model_free(model);
}

/* A limit that is set later also applies to a task that runs alone. */
static void a_group_may_be_set_after_its_tasks(void)
{
    struct model *model = model_new("hsfq", 1, 1);
    fork_into(model, 2);
    run_for(model, 100 * MS);
    set_group(model, 2, GROUP_QUOTA, 10 * MS);
    run_for(model, 100 * MS);
    int64_t before = group_ran(model, 2);
    run_for(model, 1000 * MS);
    check(group_ran(model, 2) - before == 100 * MS);
    model_free(model);
}

/* The queue's counters equal the actual numbers. */
static void check_counts(struct model *model)
{
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        const run_queue_t *queue = &model->queues[cpu];
        uint32_t members[GROUPS_MAX] = {0}, queued[GROUPS_MAX] = {0};
        uint64_t task_weights[GROUPS_MAX] = {0};
        for (uint32_t i = 0; i < model->task_count; i++) {
            const struct model_task *task = model->tasks[i];
            const struct hsfq_task *state = task->task.state;
            if (task->place == MODEL_ENDED || !model_knows(model, task) || !state->weight ||
                state->home != cpu + 1)
                continue;
            check(task->place == MODEL_QUEUED || task->place == MODEL_RUNNING);
            queued[state->group] += task->place == MODEL_QUEUED;
            task_weights[state->group] += state->weight;
            for (uint32_t group = state->group;; group = hsfq_group_of(queue, group)->parent) {
                members[group]++;
                if (group == 0)
                    break;
            }
        }
        for (uint32_t group = 0; group < GROUPS_MAX; group++) {
            const struct hsfq_group *group_state = hsfq_group_of(queue, group);
            check(group_state->members == members[group] && group_state->queued == queued[group]);
            check(group_state->task_weights == task_weights[group]);
        }
    }
}

static void change_a_group(struct model *model)
{
    uint32_t group = 1 + (uint32_t)random_below(GROUPS - 1);
    switch (random_below(4)) {
    case 0:
        set_group(model, group, GROUP_PARENT, (int64_t)random_below(group));
        break;
    case 1:
        set_group(model, group, GROUP_WEIGHT, 30 + (int64_t)random_below(300));
        break;
    case 2:
        set_group(model, group, GROUP_QUOTA, (int64_t)random_below(3) * 4 * MS);
        break;
    default:
        set_group(model, group, GROUP_PERIOD, (1 + (int64_t)random_below(30)) * MS);
    }
}

static void act(struct model *model, struct model_task **tasks)
{
    struct model_task *task = tasks[random_below(TASKS_MAX)];
    switch (random_below(7)) {
    case 0:
    case 1:
    case 2:
        block_or_wake(model, task);
        break;
    case 3:
        model_set_attribute(model, task, MODEL_NICE, random_below(10) - 5);
        break;
    case 4:
        model_set_attribute(model, task, (enum model_attribute)ATTRIBUTE_TASKGROUP,
                            random_below(GROUPS + 2));
        break;
    case 5:
        change_a_group(model);
        break;
    default:
        run_for(model, (int64_t)random_below(9000) * US);
    }
}

/* Random operations of tasks, groups and users: no task is lost, and none is held without end. */
static void whatever_happens_counts_are_right(void)
{
    static const char *const choices[] = {"hsfq", "hsfq:ticks", "hsfq:unlimited"};
    for (uint32_t trial = 0; trial < 12; trial++) {
        struct model *model = model_new(choices[trial % 3], 1 + trial % 4, 1);
        struct model_task *tasks[TASKS_MAX];
        for (int i = 0; i < TASKS_MAX; i++)
            tasks[i] = model_fork(model, NULL);
        for (int step = 0; step < 1500; step++) {
            act(model, tasks);
            check_counts(model);
            if (step % 500 == 499)
                model_switch(model, choices[(trial + (uint32_t)step) % 3]);
        }
        for (int i = 0; i < TASKS_MAX; i++) {
            int64_t before = ran(model, tasks[i]);
            if (tasks[i]->place == MODEL_BLOCKED)
                model_wake(model, tasks[i]);
            for (int wait = 0; wait < 1000 && ran(model, tasks[i]) == before; wait++)
                run_for(model, 100 * MS);
            check(ran(model, tasks[i]) > before);
        }
        for (int i = 0; i < TASKS_MAX; i++)
            model_end(model, tasks[i]);
        check_counts(model);
        model_free(model);
    }
}

int main(void)
{
    run_test(users_share_whatever_they_run);
    run_test(weights_count_level_by_level);
    run_test(what_a_sleeper_leaves_stays_in_its_group);
    run_test(no_group_is_ahead_by_more_than_slices);
    run_test(a_quota_is_exact_by_a_timer);
    run_test(a_quota_is_exact_within_a_tick_without_one);
    run_test(quotas_hold_for_all_below);
    run_test(quotas_can_be_passed_over);
    run_test(a_quota_is_one_for_all_cpus);
    run_test(groups_share_several_cpus);
    run_test(one_that_wakes_preempts_one_that_has_had_more);
    run_test(changes_count_from_then_on);
    run_test(a_group_may_be_set_after_its_tasks);
    run_test(whatever_happens_counts_are_right);
    return 0;
}
