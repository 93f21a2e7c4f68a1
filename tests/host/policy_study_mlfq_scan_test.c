/* SPDX-License-Identifier: MIT */

/*
 * Tests study 4's feedback queue with a scan of the process table: the same levels as with lists.
 */

#include "policy_harness.h"

#include "../../policies/studies/study-mlfq-scan.c"
#include "../../policies/studies/study-mlfq.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_study_mlfq, &policy_study_mlfq_scan};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 2;

static struct model *machine_with(const char *policy, uint32_t cpus, uint32_t count)
{
    struct model *model = model_new(policy, cpus, 1);
    for (uint32_t i = 0; i < count; i++)
        model_fork(model, NULL);
    return model;
}

static uint64_t level_on(struct model *model, uint32_t cpu)
{
    return model->cpus[cpu].current->task.level;
}

/* Study 4's figure 7 and its boosts: the same process at the same level in each tick. */
static void processes_that_compute_take_the_turns_that_lists_give(void)
{
    for (uint32_t count = 1; count <= 5; count++) {
        struct model *lists = machine_with("mlfq:allotment-boost", 1, count);
        struct model *table = machine_with("mlfq:table-scan", 1, count);
        for (int tick = 0; tick < 1500; tick++) {
            check(model_running(lists, 0) == model_running(table, 0));
            check(level_on(lists, 0) == level_on(table, 0));
            model_tick(lists);
            model_tick(table);
        }
        model_free(lists);
        model_free(table);
    }
}

static void a_higher_level_waits_for_the_tick_and_no_longer(void)
{
    struct model *model = machine_with("mlfq:table-scan", 1, 2);
    model_ticks(model, 200);
    check(level_on(model, 0) == 0);
    int32_t before = model_running(model, 0);
    model_fork(model, NULL);
    check(model_running(model, 0) == before);
    model_tick(model);
    check(model_running(model, 0) == 3 && level_on(model, 0) == 3);
    model_free(model);
}

/* A task wakes with the level and the tick count that it had when it blocked. */
static void one_that_blocks_keeps_its_counter(void)
{
    struct model *model = machine_with("mlfq:table-scan", 1, 1);
    for (int i = 0; i < 8; i++) {
        check(level_on(model, 0) == 3);
        model_tick(model);
        if (i < 7)
            model_sleep(model, 0, 1);
        while (!model->cpus[0].current)
            model_tick(model);
    }
    check(level_on(model, 0) == 2);
    model_free(model);
}

static void one_that_yields_lets_its_equals_go(void)
{
    struct model *model = machine_with("mlfq:table-scan", 1, 3);
    model_clear_log(model);
    for (int i = 0; i < 6; i++)
        model_yield(model, 0);
    check_picks(model, "2 3 1 2 3 1");
    model_free(model);
}

/* One table for all CPUs: on two CPUs the highest levels run, wherever they ran before. */
static void all_cpus_search_the_same_table(void)
{
    struct model *model = machine_with("mlfq:table-scan", 2, 4);
    model_ticks(model, 200);
    check(level_on(model, 0) == 0 && level_on(model, 1) == 0);
    model_fork(model, NULL);
    model_fork(model, NULL);
    model_tick(model);
    check(level_on(model, 0) == 3 && level_on(model, 1) == 3);
    model_free(model);
}

int main(void)
{
    run_test(processes_that_compute_take_the_turns_that_lists_give);
    run_test(a_higher_level_waits_for_the_tick_and_no_longer);
    run_test(one_that_blocks_keeps_its_counter);
    run_test(one_that_yields_lets_its_equals_go);
    run_test(all_cpus_search_the_same_table);
    return 0;
}
