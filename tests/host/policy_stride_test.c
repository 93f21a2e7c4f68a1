/* SPDX-License-Identifier: MIT */

/*
 * Tests stride scheduling: the order of slices, the precision of shares, and tasks that come and
 * go.
 */

#include "fair_policies.h"

#include "../../policies/stride.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_stride};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

#define TASKS_MAX 40

static struct stride_task *state_of(const struct model_task *task)
{
    return task->task.state;
}

static struct stride_queue *queue_of(struct model *model, uint32_t cpu)
{
    return model->queues[cpu].state;
}

static void check_totals(struct model *model)
{
    for (uint32_t cpu = 0; cpu < model->scheduler.queues; cpu++) {
        uint64_t tickets = 0;
        for (uint32_t i = 0; i < model->task_count; i++) {
            const struct model_task *task = model->tasks[i];
            bool is_counted =
                task->place == MODEL_QUEUED ? task->queue == cpu : model->cpus[cpu].current == task;
            tickets += is_counted ? state_of(task)->tickets : 0;
            check(!is_counted || state_of(task)->tickets == task->task.tickets);
        }
        check(queue_of(model, cpu)->tickets == tickets);
    }
}

static struct model *model_of(uint32_t cpus)
{
    return model_new("stride", cpus, 1);
}

static uint64_t *clock_of(struct model *model, uint32_t cpu)
{
    return &queue_of(model, cpu)->pass;
}

static const struct fair fair = {
    .model_of = model_of,
    .attribute = MODEL_TICKETS,
    .highest = 50,
    .ticks_off = 1,
    .per_ns = (uint64_t)PASS_PER_NS,
    .clock = clock_of,
    .check_totals = check_totals,
};

/* Returns how many of its slices a task is ahead of its share against another task. */
static double pair_error(const struct model_task *one, const struct model_task *other)
{
    double tickets = one->task.tickets, others = other->task.tickets;
    double both = (double)(one->task.run_time + other->task.run_time) / MODEL_TICK_NS;
    return (double)one->task.run_time / MODEL_TICK_NS - both * tickets / (tickets + others);
}

/* The example of the technical memo: A, B, C with 3, 2 and 1 tickets. */
static void three_two_one(void)
{
    struct model *model = model_new("stride", 1, 1);
    for (uint32_t tickets = 3; tickets >= 1; tickets--)
        fork_with(model, tickets);
    model_clear_log(model);
    model_ticks(model, 6);
    check_picks(model, "2 1 1 2 3 1");
    model_ticks(model, 6);
    check_picks(model, "2 1 1 2 3 1");
    check(model->tasks[0]->task.run_time == 6 * MODEL_TICK_NS);
    check(model->tasks[1]->task.run_time == 4 * MODEL_TICK_NS);
    check(model->tasks[2]->task.run_time == 2 * MODEL_TICK_NS);
    model_free(model);
}

static void equal_tickets_take_turns(void)
{
    struct model *model = model_new("stride", 1, 1);
    for (int i = 0; i < 3; i++)
        fork_with(model, 7);
    model_clear_log(model);
    model_ticks(model, 6);
    check_picks(model, "2 3 1 2 3 1");
    model_free(model);
}

static void a_slice_lasts_as_many_ticks(void)
{
    struct model *model = model_new("stride", 1, 1);
    uint32_t slice = tunable_find(model->policy, "slice", strlen("slice"));
    check(tunable_set(&model->scheduler, model->policy, slice, 3) == POLICY_OK);
    struct model_task *first = fork_with(model, 1);
    fork_with(model, 1);
    check(policy_stride.time_slice(&model->scheduler, &first->task) == 3);
    model_clear_log(model);
    model_ticks(model, 2);
    check_picks(model, "");
    model_tick(model);
    check_picks(model, "2");
    model_ticks(model, 6);
    check_picks(model, "1 2");
    model_free(model);
}

/*
 * Between any two tasks, over any interval, the error is at most one slice. Each extreme of the
 * difference since the start is an end of some interval. The worst interval's error is therefore
 * the largest difference minus the smallest.
 */
static void check_pairs(uint32_t count, uint32_t ticks, uint32_t tickets_limit)
{
    static double least[TASKS_MAX][TASKS_MAX], most[TASKS_MAX][TASKS_MAX];
    struct model *model = model_new("stride", 1, 1);
    memset(least, 0, sizeof(least));
    memset(most, 0, sizeof(most));
    for (uint32_t i = 0; i < count; i++)
        fork_with(model, 1 + (uint32_t)random_below(tickets_limit));
    model_yield(model, 0); /* the first task was picked while it was alone */
    for (uint32_t tick = 0; tick < ticks; tick++) {
        model_tick(model);
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t j = 0; j < count; j++) {
                double error = pair_error(model->tasks[i], model->tasks[j]);
                least[i][j] = error < least[i][j] ? error : least[i][j];
                most[i][j] = error > most[i][j] ? error : most[i][j];
                check(most[i][j] - least[i][j] <= 1 + 1e-6);
            }
        }
    }
    model_free(model);
}

static void no_pair_is_off_by_more_than_a_slice(void)
{
    for (uint32_t count = 2; count <= TASKS_MAX; count += 2) {
        check_pairs(count, 400, 20);
        check_pairs(count, 400, TICKETS_MAX);
    }
}

/*
 * Two tasks with random tickets: after any number of ticks, the error of each share is below one
 * tick.
 */
static void two_tasks_have_their_shares_to_a_slice(void)
{
    for (int round = 0; round < 200; round++) {
        struct model *model = model_new("stride", 1, 1);
        struct model_task *one = fork_with(model, 1 + (uint32_t)random_below(100));
        struct model_task *other = fork_with(model, 1 + (uint32_t)random_below(100));
        model_yield(model, 0);
        for (int tick = 0; tick < 300; tick++) {
            model_tick(model);
            double error = pair_error(one, other);
            check(error < 1 && error > -1);
        }
        model_free(model);
    }
}

/* A long run with the smallest and the largest number of tickets: no error accumulates. */
static void rounding_adds_up_to_nothing(void)
{
    struct model *model = model_new("stride", 1, 1);
    fork_with(model, TICKETS_MAX);
    fork_with(model, TICKETS_MAX - 1);
    fork_with(model, 3);
    fork_with(model, 1);
    for (int tick = 0; tick < 1500000; tick++)
        model_tick(model);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            double error = pair_error(model->tasks[i], model->tasks[j]);
            check(error < 1 && error > -1);
        }
    }
    model_free(model);
}

static void a_part_of_a_slice_costs_a_part(void)
{
    struct model *model = model_new("stride", 1, 1);
    struct model_task *half = fork_with(model, 1);
    struct model_task *full_slice = fork_with(model, 1);
    for (int round = 0; round < 300; round++) {
        if (model->cpus[0].current == half) {
            model_advance(model, MODEL_TICK_NS / 4);
            model_yield(model, 0);
        } else {
            model_tick(model);
        }
    }
    double error = pair_error(half, full_slice);
    check(error > -1.01 && error < 1.01);
    check(half->task.selections > 3 * full_slice->task.selections);
    model_free(model);
}

static void who_yields_goes_on_while_its_pass_is_the_lowest(void)
{
    struct model *model = model_new("stride", 1, 1);
    fork_with(model, 1);
    fork_with(model, 1);
    model_clear_log(model);
    model_yield(model, 0);
    check_picks(model, "1");
    model_advance(model, 1);
    model_yield(model, 0);
    check_picks(model, "2");
    model_free(model);
}

/* After any sleep, a task returns with the lead that it had. */
static void sleep_gains_no_credit(void)
{
    for (uint32_t sleep = 1; sleep <= 1000; sleep *= 10) {
        struct model *model = model_new("stride", 1, 1);
        struct model_task *worker = fork_with(model, 1);
        struct model_task *sleeper = fork_with(model, 1);
        model_ticks(model, 9);
        check(model->cpus[0].current == sleeper);
        uint64_t before = sleeper->task.run_time;
        model_sleep(model, 0, sleep);
        model_ticks(model, sleep);
        uint64_t others = worker->task.run_time;
        check(sleeper->place != MODEL_BLOCKED);
        model_ticks(model, 40);
        uint64_t run_time = sleeper->task.run_time - before;
        others = worker->task.run_time - others;
        check(run_time + others == 40 * MODEL_TICK_NS);
        check(run_time <= others + 2 * MODEL_TICK_NS && others <= run_time + 2 * MODEL_TICK_NS);
        model_free(model);
    }
}

/* A task that has used its slice before it sleeps gains no slice by a short sleep. */
static void sleep_does_not_wipe_out_a_lead(void)
{
    struct model *model = model_new("stride", 1, 1);
    struct model_task *cheat = fork_with(model, 1);
    struct model_task *honest = fork_with(model, 1);
    for (int round = 0; round < 2000; round++) {
        model_advance(model, MODEL_TICK_NS * 9 / 10);
        if (model->cpus[0].current == cheat)
            model_sleep(model, 0, 0);
        model_advance(model, MODEL_TICK_NS / 10);
        model_tick_cpu(model, 0);
    }
    check(cheat->task.run_time <= honest->task.run_time + 2 * MODEL_TICK_NS);
    model_free(model);
}

static void a_newcomer_waits_for_its_stride_and_no_longer(void)
{
    struct model *model = model_new("stride", 1, 1);
    struct model_task *old = fork_with(model, 4);
    model_ticks(model, 1000);
    struct model_task *new = fork_with(model, 1);
    uint64_t before = old->task.run_time;
    model_ticks(model, 50);
    uint64_t run_time = new->task.run_time, others = old->task.run_time - before;
    check(run_time == 10 * MODEL_TICK_NS && others == 40 * MODEL_TICK_NS);
    model_free(model);
}

/* The queue's pass is the mean of its tasks, so it advances at their rate. */
static void the_pass_of_the_queue_keeps_pace(void)
{
    struct model *model = model_new("stride", 1, 1);
    for (uint32_t i = 1; i <= 10; i++)
        fork_with(model, i);
    model_ticks(model, 5500);
    for (uint32_t i = 0; i < 10; i++) {
        int64_t ahead = (int64_t)(state_of(model->tasks[i])->pass - queue_of(model, 0)->pass);
        double slices = (double)ahead * (i + 1) / PASS_PER_NS / MODEL_TICK_NS;
        check(slices > -10 && slices < 10);
    }
    model_free(model);
}

/* Two queues may have different zero points of pass: only the lead relative to the queue counts. */
static void what_remains_moves_with_the_task(void)
{
    struct model *model = model_new("stride", 2, 1);
    for (int i = 0; i < 6; i++)
        fork_with(model, 7);
    model_ticks(model, 100);
    struct run_queue *from = &model->queues[0], *to = &model->queues[1];
    struct task *task = queue_of(model, 0)->waiting.first;
    struct stride_task *state = task->state;
    int64_t ahead = (int64_t)(state->pass - queue_of(model, 0)->pass);
    queue_of(model, 1)->pass += 123456789012345;
    policy_stride.dequeue(from, task);
    check(state->tickets == 0);
    policy_stride.enqueue(to, task, ENQUEUE_MOVED);
    int64_t ahead_on_other = (int64_t)(state->pass - queue_of(model, 1)->pass);
    check(ahead != 0 && ahead_on_other - ahead < PASS_PER_NS &&
          ahead - ahead_on_other < PASS_PER_NS);
    model_free(model);
}

static void equal_tasks_share_several_cpus(void)
{
    struct model *model = model_new("stride", 4, 1);
    for (int i = 0; i < 8; i++)
        fork_with(model, 5);
    model_ticks(model, 200);
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t ticks = model->tasks[i]->task.run_time / MODEL_TICK_NS;
        check(ticks >= 98 && ticks <= 102);
    }
    model_free(model);
}

/* Returns the tasks' shares of all run time in percent, starting at some tick. */
static void check_shares(const char *what, uint32_t cpus, const double *expected)
{
    struct model *model = model_new("stride", cpus, 1);
    uint64_t before[TASKS_MAX], total = 0;
    for (const char *c = what; *c; c++)
        fork_with(model, (uint32_t)(*c - '0'));
    model_ticks(model, 100);
    for (uint32_t i = 0; i < model->task_count; i++)
        before[i] = model->tasks[i]->task.run_time;
    model_ticks(model, 1000);
    for (uint32_t i = 0; i < model->task_count; i++)
        total += model->tasks[i]->task.run_time - before[i];
    for (uint32_t i = 0; i < model->task_count; i++) {
        uint64_t run_time = model->tasks[i]->task.run_time - before[i];
        double error = 100.0 * (double)run_time / (double)total - expected[i];
        check(error > -1 && error < 1);
    }
    model_free(model);
}

/*
 * Weighted max-min: a task that is due more than a CPU receives one, and the others share the rest.
 */
static void shares_hold_for_the_whole_machine(void)
{
    check_shares("321", 1, (double[]){50, 33.33, 16.67});
    check_shares("321", 2, (double[]){50, 33.33, 16.67});
    check_shares("811", 2, (double[]){50, 25, 25});
    check_shares("433", 2, (double[]){40, 30, 30});
    check_shares("33221111", 3, (double[]){21.43, 21.43, 14.29, 14.29, 7.14, 7.14, 7.14, 7.14});
    check_shares("99911", 4, (double[]){25, 25, 25, 12.5, 12.5});
}

static void a_switch_to_it_begins_anew(void)
{
    struct model *model = model_new("stride", 1, 1);
    for (uint32_t tickets = 3; tickets >= 1; tickets--)
        fork_with(model, tickets);
    model_ticks(model, 100);
    model_switch(model, "stride");
    model_clear_log(model);
    model_ticks(model, 12);
    check_picks(model, "2 1 1 2 3 1 2 1 1 2 3 1");
    model_free(model);
}

int main(void)
{
    run_test(three_two_one);
    run_test(equal_tickets_take_turns);
    run_test(a_slice_lasts_as_many_ticks);
    run_test(no_pair_is_off_by_more_than_a_slice);
    run_test(two_tasks_have_their_shares_to_a_slice);
    run_test(rounding_adds_up_to_nothing);
    run_test(a_part_of_a_slice_costs_a_part);
    run_test(who_yields_goes_on_while_its_pass_is_the_lowest);
    run_test(sleep_gains_no_credit);
    run_test(sleep_does_not_wipe_out_a_lead);
    run_test(a_newcomer_waits_for_its_stride_and_no_longer);
    run_test(forking_is_no_way_to_more);
    run_test(shares_may_change_at_any_time);
    run_test(the_pass_of_the_queue_keeps_pace);
    run_test(a_clock_wraps_around);
    run_test(totals_are_right);
    run_test(what_remains_moves_with_the_task);
    run_test(equal_tasks_share_several_cpus);
    run_test(shares_hold_for_the_whole_machine);
    run_test(a_switch_to_it_begins_anew);
    return 0;
}
