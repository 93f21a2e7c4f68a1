/* SPDX-License-Identifier: MIT */

/*
 * Tests round-robin: which task runs when, on one CPU and several, with a run queue and by table
 * scan.
 */

#include "policy_harness.h"

#include "../../policies/rr.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_rr};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

/* Makes tasks 1 to `count` without a parent, one after the other. */
static struct model *machine_with(const char *policy, uint32_t cpus, uint32_t count)
{
    struct model *model = model_new(policy, cpus, 1);
    for (uint32_t i = 0; i < count; i++)
        model_fork(model, NULL);
    return model;
}

static void turns_go_round(void)
{
    struct model *model = machine_with("rr", 1, 3);
    model_ticks(model, 6);
    check_picks(model, "1 2 3 1 2 3 1");
    model_end(model, model->tasks[2 - 1]);
    model_ticks(model, 3);
    check_picks(model, "3 1 3");
    model_free(model);
}

static void set_slice(struct model *model, int64_t ticks)
{
    check(tunable_set(&model->scheduler, model->policy,
                      tunable_find(model->policy, "slice", strlen("slice")), ticks) == POLICY_OK);
}

static void a_slice_lasts_as_many_ticks(void)
{
    struct model *model = model_new("rr", 1, 1);
    set_slice(model, 3);
    struct model_task *first = model_fork(model, NULL);
    model_fork(model, NULL);
    check(policy_rr.time_slice(&model->scheduler, &first->task) == 3);
    model_ticks(model, 2);
    check_picks(model, "1");
    model_tick(model);
    check_picks(model, "2");
    check(first->task.run_time == 3 * MODEL_TICK_NS);
    model_ticks(model, 9);
    check_picks(model, "1 2 1");
    model_free(model);
}

/*
 * A slice counts ticks, not time: a slice that begins within a tick is shorter by the elapsed part.
 * (Weighted round-robin counts time.)
 */
static void a_part_of_a_tick_counts_as_one(void)
{
    struct model *model = model_new("rr", 1, 1);
    set_slice(model, 2);
    model_fork(model, NULL);
    model_fork(model, NULL);
    model_advance(model, MODEL_TICK_NS / 10 * 9);
    model_yield(model, 0);
    model_advance(model, MODEL_TICK_NS / 10);
    model_tick_cpu(model, 0);
    check_picks(model, "1 2");
    model_tick(model);
    check_picks(model, "1");
    check(model->tasks[1]->task.run_time == MODEL_TICK_NS / 10 * 11);
    model_ticks(model, 2);
    check_picks(model, "2"); /* 1 has two ticks, though it yielded within an earlier one */
    model_free(model);
}

static void a_turn_that_ends_early_gives_no_credit(void)
{
    struct model *model = model_new("rr", 1, 1);
    set_slice(model, 3);
    model_fork(model, NULL);
    model_fork(model, NULL);
    model_ticks(model, 2);
    model_yield(model, 0);
    model_ticks(model, 3); /* 2's complete slice */
    check_picks(model, "1 2 1");
    model_ticks(model, 2); /* 1 has a new slice of 3 */
    check_picks(model, "");
    model_tick(model);
    check_picks(model, "2");
    model_free(model);
}

static void alone_it_goes_on(void)
{
    struct model *model = machine_with("rr", 1, 1);
    model_ticks(model, 3);
    check_picks(model, "1 1 1 1");
    check(model->tasks[0]->task.run_time == 3 * MODEL_TICK_NS);
    model_yield(model, 0);
    check_picks(model, "1");
    model_block(model, 0);
    check(model_running(model, 0) == 0);
    model_ticks(model, 2);
    check_picks(model, "");
    model_free(model);
}

static void who_wakes_or_yields_goes_to_the_end(void)
{
    struct model *model = machine_with("rr", 1, 3);
    model_block(model, 0); /* 1 */
    check_picks(model, "1 2");
    model_wake(model, model->tasks[0]);
    model_yield(model, 0);
    model_yield(model, 0);
    model_yield(model, 0);
    check_picks(model, "3 1 2");
    model_free(model);
}

/* A (runs from time 0) and B (arrives at tick 2), slice 2. */
static void who_arrives_is_before_whose_slice_ends(void)
{
    struct model *model = model_new("rr", 1, 1);
    set_slice(model, 2);
    model_fork(model, NULL);
    model_sleep(model, 0, 2); /* B is 1 */
    model_fork(model, NULL);  /* A is 2 */
    model_ticks(model, 8);
    check_picks(model, "1 2 1 2 1 2");
    model_free(model);
}

static void timers_wake_in_the_order_of_time_then_start(void)
{
    struct model *model = machine_with("rr", 1, 4);
    model_sleep(model, 0, 3); /* 1 */
    model_sleep(model, 0, 2); /* 2 */
    model_sleep(model, 0, 3); /* 3 */
    check_picks(model, "1 2 3 4");
    model_advance(model, 3 * MODEL_TICK_NS);
    model_tick_cpu(model, 0);
    model_ticks(model, 4);
    check_picks(model, "2 1 3 4 2");
    model_free(model);
}

static void a_fork_is_queued_in_the_order_of_the_program(void)
{
    struct model *model = model_new("rr", 1, 1);
    struct model_task *parent = model_fork(model, NULL);
    model_fork(model, parent);
    model_yield(model, 0);              /* 1 after its child 2 */
    model_fork(model, model->tasks[1]); /* 3 after 1 */
    model_ticks(model, 4);
    check_picks(model, "1 2 1 3 2 1");
    model_free(model);
}

static void a_running_task_keeps_its_turn_when_an_attribute_changes(void)
{
    struct model *model = model_new("rr", 1, 1);
    set_slice(model, 3);
    model_fork(model, NULL);
    model_fork(model, NULL);
    model_ticks(model, 2);
    model_set_attribute(model, model->tasks[0], MODEL_WEIGHT, 9);
    check_picks(model, "1 1");
    model_tick(model); /* its third tick */
    check_picks(model, "2");
    model_free(model);

    model = machine_with("rr:table-scan", 1, 3);
    model_tick(model);
    model_set_attribute(model, model->tasks[1], MODEL_WEIGHT, 9);
    model_tick(model);
    check_picks(model, "1 2 2 3");
    model_free(model);
}

static void attributes_are_inherited_and_change_nothing_but_the_place(void)
{
    struct model *model = machine_with("rr", 1, 3);
    model_set_attribute(model, model->tasks[1], MODEL_PRIORITY, 0);
    model_ticks(model, 3);
    check_picks(model, "1 3 2 1");
    model_set_attribute(model, model->tasks[1], MODEL_TICKETS, 7);
    struct model_task *child = model_fork(model, model->tasks[1]);
    check(child->task.priority == 0 && child->task.tickets == 7);
    model_free(model);
}

static void new_tasks_go_where_the_fewest_are(void)
{
    struct model *model = model_new("rr", 4, 1);
    struct model_task *parent = model_fork(model, NULL);
    for (int i = 0; i < 7; i++)
        model_fork(model, parent);
    check_picks(model, "0:1 1:2 2:3 3:4");
    for (uint32_t cpu = 0; cpu < 4; cpu++)
        check(model->queues[cpu].queued == 1 && model->queues[cpu].running == 1);
    model_ticks(model, 2);
    check_picks(model, "0:5 1:6 2:7 3:8 0:1 1:2 2:3 3:4");
    model_free(model);
}

static void an_idle_cpu_takes_from_the_longest(void)
{
    struct model *model = model_new("rr", 2, 1);
    struct model_task *parent = model_fork(model, NULL);
    for (int i = 0; i < 4; i++)
        model_fork(model, parent);
    check_picks(model, "0:1 1:2"); /* 0: 1 3 5, 1: 2 4 */
    model_end(model, model->tasks[2 - 1]);
    model_end(model, model->tasks[4 - 1]);
    check_picks(model, "1:4 1:3");
    check(model->queues[0].queued == 1 && model->queues[1].queued == 0);
    model_end(model, model->tasks[3 - 1]);
    model_end(model, model->tasks[5 - 1]);
    check_picks(model, "1:5");
    check(model_running(model, 0) == 1 && model_running(model, 1) == 0);
    model_free(model);
}

static void a_busy_cpu_takes_if_it_evens_the_load(void)
{
    struct model *model = model_new("rr", 2, 1);
    struct model_task *parent = model_fork(model, NULL);
    for (int i = 0; i < 5; i++)
        model_fork(model, parent); /* 0: 1 3 5, 1: 2 4 6 */
    model_end(model, model->tasks[4 - 1]);
    model_tick(model); /* three and two: no task moves */
    check(model->queues[0].queued == 2 && model->queues[1].queued == 1);
    model_end(model, model->tasks[2 - 1]);
    model_tick(model); /* three and one */
    check(model->queues[0].queued == 1 && model->queues[1].queued == 1);
    model_free(model);
}

/* CPU 0's tick wakes 2 for CPU 1, which is idle until its tick. */
static void a_tick_in_which_a_task_did_not_run_is_not_charged(void)
{
    struct model *model = model_new("rr", 2, 1);
    set_slice(model, 2);
    struct model_task *second = (model_fork(model, NULL), model_fork(model, NULL));
    model_sleep(model, 1, 2);
    second->wake_cpu = 0;
    model_ticks(model, 2);
    model_fork(model, second); /* 3 waits behind 2 */
    model_clear_log(model);
    model_tick(model);
    check_picks(model, "");
    model_tick(model);
    check_picks(model, "0:1 1:3");
    model_free(model);
}

static void a_table_scan_follows_the_slots(void)
{
    struct model *model = machine_with("rr:table-scan", 1, 4);
    model_ticks(model, 5);
    check_picks(model, "1 2 3 4 1 2");
    model_block(model, 0); /* 2; then 3 runs */
    model_tick(model);
    check_picks(model, "3 4");
    model_wake(model, model->tasks[2 - 1]); /* in a run queue, it would follow 1 and 3 */
    model_ticks(model, 3);
    check_picks(model, "1 2 3");
    model_end(model, model->tasks[1 - 1]);
    model_fork(model, NULL); /* 5 gets the slot of 1 */
    check(model->tasks[4]->task.slot == 0);
    model_ticks(model, 3);
    check_picks(model, "4 5 2");
    model_free(model);
}

static void a_table_scan_is_one_queue_for_all_cpus(void)
{
    struct model *model = machine_with("rr:table-scan", 3, 7);
    check(model->scheduler.queues == 1 && model->queues[0].running == 3);
    check_picks(model, "0:1 1:2 2:3");
    model_tick(model); /* 0 continues after slot 0: 4 is the first free task */
    check_picks(model, "0:4 1:5 2:6");
    model_tick(model);
    check_picks(model, "0:7 1:1 2:2");
    model_free(model);
}

static void a_switch_keeps_everybody(void)
{
    struct model *model = machine_with("rr", 2, 6); /* 0: 1 3 5, 1: 2 4 6 */
    model_block(model, 1);                          /* 2 */
    model_clear_log(model);
    model_switch(model, "rr:table-scan");
    check(model->scheduler.queues == 1);
    check(model->queues[0].queued == 3 && model->queues[0].running == 2);
    model_wake(model, model->tasks[2 - 1]);
    model_ticks(model, 2);
    check_picks(model, "0:1 1:3 0:2 1:4 0:3 1:5");
    model_switch(model, "rr");
    check(model->scheduler.queues == 2);
    model_ticks(model, 6);
    for (uint32_t i = 0; i < model->task_count; i++)
        check(model->tasks[i]->task.selections >= 2);
    model_free(model);
}

static void a_switch_passes_the_order_on(void)
{
    struct model *model = machine_with("rr", 1, 4);
    model_ticks(model, 2);
    check_picks(model, "1 2 3");
    model_switch(model, "rr"); /* 3 leaves its CPU, after the queued tasks */
    model_ticks(model, 4);
    check_picks(model, "4 1 2 3 4");
    model_free(model);
}

int main(void)
{
    run_test(turns_go_round);
    run_test(a_slice_lasts_as_many_ticks);
    run_test(a_part_of_a_tick_counts_as_one);
    run_test(a_turn_that_ends_early_gives_no_credit);
    run_test(alone_it_goes_on);
    run_test(who_wakes_or_yields_goes_to_the_end);
    run_test(who_arrives_is_before_whose_slice_ends);
    run_test(timers_wake_in_the_order_of_time_then_start);
    run_test(a_fork_is_queued_in_the_order_of_the_program);
    run_test(a_running_task_keeps_its_turn_when_an_attribute_changes);
    run_test(attributes_are_inherited_and_change_nothing_but_the_place);
    run_test(new_tasks_go_where_the_fewest_are);
    run_test(an_idle_cpu_takes_from_the_longest);
    run_test(a_busy_cpu_takes_if_it_evens_the_load);
    run_test(a_tick_in_which_a_task_did_not_run_is_not_charged);
    run_test(a_table_scan_follows_the_slots);
    run_test(a_table_scan_is_one_queue_for_all_cpus);
    run_test(a_switch_keeps_everybody);
    run_test(a_switch_passes_the_order_on);
    return 0;
}
