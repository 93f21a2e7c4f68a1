/* SPDX-License-Identifier: MIT */

/*
 * Tests the Completely Fair Scheduler: time slices, weights of loads, and placement in virtual
 * time.
 */

#include "fair_policies.h"

#include "../../policies/cfs.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_cfs};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

#define TASKS_MAX 40

static void set(struct model *model, const char *name, int64_t value)
{
    uint32_t place = tunable_find(model->policy, name, strlen(name));
    check(tunable_set(&model->scheduler, model->policy, place, value) == POLICY_OK);
    cfs_scheduler_init(&model->scheduler);
}

/* Sets Linux's times in ticks, as with a tick of 1 ms. */
static struct model *model_of(uint32_t cpus)
{
    struct model *model = model_new("cfs", cpus, 1);
    set(model, "latency_us", 60000);
    set(model, "min_granularity_us", 7500);
    set(model, "wakeup_granularity_us", 10000);
    set(model, "scaling", 0);
    return model;
}

static struct cfs_task *state_of(const struct model_task *task)
{
    return task->task.state;
}

static struct cfs_queue *queue_of(struct model *model, uint32_t cpu)
{
    return model->queues[cpu].state;
}

static double ticks_of(const struct model_task *task)
{
    return (double)task->task.run_time / MODEL_TICK_NS;
}

/* The clocks never go back. */
static void check_totals(struct model *model)
{
    static uint64_t clocks[3];
    for (uint32_t cpu = 0; cpu < model->scheduler.queues; cpu++) {
        const struct cfs_queue *queue = queue_of(model, cpu);
        uint64_t load = 0;
        for (uint32_t i = 0; i < model->task_count; i++) {
            const struct model_task *task = model->tasks[i];
            bool is_counted =
                task->place == MODEL_QUEUED ? task->queue == cpu : model->cpus[cpu].current == task;
            load += is_counted ? state_of(task)->load : 0;
            check(!is_counted || state_of(task)->load == (uint64_t)task->task.weight << 16);
            check(!is_counted || state_of(task)->clock_cpu == cpu);
        }
        const struct model_task *current = model->cpus[cpu].current;
        check(queue->sum.load == load && queue->running == (current ? &current->task : NULL));
        check(!cfs_is_before(queue->clock, clocks[cpu]));
        clocks[cpu] = queue->clock;
    }
}

static uint64_t *clock_of(struct model *model, uint32_t cpu)
{
    return &queue_of(model, cpu)->clock;
}

static const struct fair fair = {
    .model_of = model_of,
    .attribute = MODEL_WEIGHT,
    .highest = 10,
    .ticks_off = 10,
    .per_ns = 1,
    .clock = clock_of,
    .check_totals = check_totals,
};

/* Three tasks have 20 ms each of a target of 60 ms, which the next tick exceeds. */
static void turns_share_the_latency_target(void)
{
    struct model *model = model_of(1);
    for (int i = 0; i < 3; i++)
        fork_with(model, 5);
    model_ticks(model, 30);
    uint64_t picked = model->tasks[0]->task.selections;
    model_ticks(model, 90);
    check(model->tasks[0]->task.selections - picked == 10);
    for (int i = 0; i < 3; i++)
        check(model->policy->time_slice(&model->scheduler, &model->tasks[i]->task) == 3);
    model_free(model);
}

static uint64_t turns_in(struct model *model, uint32_t ticks)
{
    uint64_t turns = 0;
    for (uint32_t i = 0; i < model->task_count; i++)
        turns -= model->tasks[i]->task.selections;
    model_ticks(model, ticks);
    for (uint32_t i = 0; i < model->task_count; i++)
        turns += model->tasks[i]->task.selections;
    return turns;
}

/* 30 tasks do not fit into the target: a slice is one granularity, until the next tick. */
static void a_turn_is_never_shorter_than_its_granularity(void)
{
    struct model *model = model_of(1);
    for (int i = 0; i < 30; i++)
        fork_with(model, 5);
    model_ticks(model, 60);
    check(turns_in(model, 300) == 300);
    set(model, "min_granularity_us", 30000);
    model_ticks(model, 120);
    check(turns_in(model, 480) == 480 / 4);
    model_free(model);
}

static void times_grow_with_the_cpus(void)
{
    static const struct {
        uint32_t cpus;
        uint64_t factor;
    } cases[] = {{1, 1}, {2, 2}, {3, 2}, {4, 3}, {7, 3}, {8, 4}, {16, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model *model = model_new("cfs", cases[i].cpus, 1);
        const struct cfs_times *times = model->scheduler.state;
        check(times->latency == cases[i].factor * 6000000);
        check(times->granularity == cases[i].factor * 750000);
        check(times->wakeup == cases[i].factor * 1000000);
        check(times->credit == times->latency / 2);
        model_free(model);
    }
}

/* With any weights, each task has its share within one time slice after some time. */
static void shares_are_those_of_the_weights(void)
{
    for (uint32_t count = 2; count <= 12; count++) {
        struct model *model = model_of(1);
        uint64_t weights = 0;
        for (uint32_t i = 0; i < count; i++)
            weights += fork_with(model, 1 + (uint32_t)random_below(10))->task.weight;
        model_ticks(model, 200);
        double before[TASKS_MAX];
        for (uint32_t i = 0; i < count; i++)
            before[i] = ticks_of(model->tasks[i]);
        model_ticks(model, 3000);
        for (uint32_t i = 0; i < count; i++) {
            double due = 3000.0 * model->tasks[i]->task.weight / (double)weights;
            double error = ticks_of(model->tasks[i]) - before[i] - due;
            check(error < 8 && error > -8);
        }
        model_free(model);
    }
}

static void nice_tasks_share_by_linux_s_weights(void)
{
    struct model *model = model_new("cfs:nice", 1, 1);
    struct model_task *usual = model_fork(model, NULL);
    struct model_task *nice = model_fork(model, NULL);
    model_set_attribute(model, nice, MODEL_NICE, 5); /* 335 against 1024 */
    model_ticks(model, 4052);
    check(ticks_of(nice) > 988 && ticks_of(nice) < 1010);
    check(ticks_of(usual) > 3042 && ticks_of(usual) < 3064);
    model_free(model);
}

/* A task that slept is behind by more than the granularity, and preempts between two ticks. */
static void a_task_that_wakes_preempts(void)
{
    struct model *model = model_of(1);
    struct model_task *hog = fork_with(model, 5);
    struct model_task *sleeper = fork_with(model, 5);
    while (model->cpus[0].current != sleeper)
        model_tick(model);
    model_block(model, 0);
    model_ticks(model, 50);
    check(model->cpus[0].current == hog);
    model_advance(model, MODEL_TICK_NS / 2);
    model_wake(model, sleeper);
    check(model->cpus[0].current == sleeper);
    model_free(model);
}

/* The comparison uses the running task's time at this moment. */
static void who_is_hardly_behind_waits(void)
{
    for (int granularity = 0; granularity < 2; granularity++) {
        struct model *model = model_of(1);
        set(model, "sleeper_credit", 0);
        struct model_task *hog = fork_with(model, 5);
        struct model_task *sleeper = fork_with(model, 5);
        while (model->cpus[0].current != sleeper)
            model_tick(model);
        model_block(model, 0);
        model_ticks(model, 50);
        model_advance(model, MODEL_TICK_NS * 9 / 10);
        set(model, "wakeup_granularity_us", granularity ? 10000 : 8000);
        model_wake(model, sleeper);
        check(model->cpus[0].current == (granularity ? hog : sleeper));
        model_free(model);
    }
}

/* After any sleep, a task is ahead of the others by at most half a latency target. */
static void no_length_of_sleep_earns_more_than_the_credit(void)
{
    double ahead[3];
    for (int i = 0; i < 3; i++) {
        struct model *model = model_of(1);
        struct model_task *hog = fork_with(model, 5);
        struct model_task *sleeper = fork_with(model, 5);
        while (model->cpus[0].current != sleeper)
            model_tick(model);
        model_sleep(model, 0, i == 0 ? 20 : i == 1 ? 200 : 20000);
        while (sleeper->place == MODEL_BLOCKED)
            model_tick(model);
        double before = ticks_of(sleeper) - ticks_of(hog);
        model_ticks(model, 400);
        ahead[i] = ticks_of(sleeper) - ticks_of(hog) - before;
        check(ahead[i] <= 3 + 4);
        model_free(model);
    }
    check(ahead[1] == ahead[0] && ahead[2] == ahead[0]);
}

/* Three tasks run for a tick and sleep for several; a CPU-bound task keeps its share. */
static void sleepers_starve_nobody(void)
{
    for (uint64_t sleep = 1; sleep <= 8; sleep++) {
        struct model *model = model_of(1);
        struct model_task *hog = fork_with(model, 5);
        for (int i = 0; i < 3; i++)
            fork_with(model, 5);
        for (int tick = 0; tick < 4000; tick++) {
            model_tick(model);
            if (model->cpus[0].current && model->cpus[0].current != hog)
                model_sleep(model, 0, sleep);
        }
        check(ticks_of(hog) >= 1000);
        model_free(model);
    }
}

static void a_new_task_begins_a_turn_later(void)
{
    struct model *model = model_of(1);
    struct model_task *old = fork_with(model, 5);
    model_ticks(model, 1000);
    struct model_task *new = fork_with(model, 5);
    check(model->cpus[0].current == old);
    check(state_of(new)->virtual_time - queue_of(model, 0)->clock == 30000000);
    double before = ticks_of(old);
    model_ticks(model, 400);
    double difference = ticks_of(old) - before - ticks_of(new);
    check(difference >= 0 && difference <= 8);
    model_free(model);
}

static void one_that_yields_lets_the_next_go(void)
{
    struct model *model = model_of(1);
    struct model_task *one = fork_with(model, 5);
    struct model_task *other = fork_with(model, 5);
    while (model->cpus[0].current != one)
        model_tick(model);
    uint64_t *time = &state_of(one)->virtual_time;
    *time = state_of(other)->virtual_time - MODEL_TICK_NS; /* not too far behind the other task */
    model_yield(model, 0);
    check(model->cpus[0].current == other);
    while (model->cpus[0].current != one)
        model_tick(model);
    *time = state_of(other)->virtual_time - MODEL_TICK_NS - 1;
    model_yield(model, 0);
    check(model->cpus[0].current == one);
    model_free(model);
}

/*
 * The clocks of two queues are unrelated: a task that moves keeps its lead relative to the queue.
 */
static void what_it_is_ahead_moves_with_the_task(void)
{
    struct model *model = model_of(2);
    for (int i = 0; i < 6; i++)
        fork_with(model, 5);
    model_ticks(model, 100);
    struct run_queue *from = &model->queues[0], *to = &model->queues[1];
    struct task *task = queue_of(model, 0)->waiting.first;
    struct cfs_task *state = task->state;
    state->virtual_time += 12345;
    uint64_t ahead = state->virtual_time - queue_of(model, 0)->clock;
    queue_of(model, 1)->clock += 123456789012345;
    policy_cfs.dequeue(from, task);
    policy_cfs.enqueue(to, task, ENQUEUE_MOVED);
    check(state->virtual_time - queue_of(model, 1)->clock == ahead && ahead >= 12345);
    model_free(model);
}

static void loads_are_evened_over_cpus(void)
{
    struct model *model = model_of(4);
    struct model_task *heavy = fork_with(model, 9);
    for (int i = 0; i < 9; i++)
        fork_with(model, 3);
    model_ticks(model, 300);
    uint64_t before = heavy->task.run_time;
    model_ticks(model, 100);
    check(heavy->task.run_time - before == 100 * MODEL_TICK_NS);
    for (uint32_t cpu = 0; cpu < 4; cpu++)
        check(queue_of(model, cpu)->sum.load == 9ul << 16);
    model_free(model);
}

int main(void)
{
    run_test(turns_share_the_latency_target);
    run_test(a_turn_is_never_shorter_than_its_granularity);
    run_test(times_grow_with_the_cpus);
    run_test(shares_are_those_of_the_weights);
    run_test(nice_tasks_share_by_linux_s_weights);
    run_test(a_task_that_wakes_preempts);
    run_test(who_is_hardly_behind_waits);
    run_test(no_length_of_sleep_earns_more_than_the_credit);
    run_test(sleepers_starve_nobody);
    run_test(a_new_task_begins_a_turn_later);
    run_test(forking_is_no_way_to_more);
    run_test(one_that_yields_lets_the_next_go);
    run_test(shares_may_change_at_any_time);
    run_test(totals_are_right);
    run_test(what_it_is_ahead_moves_with_the_task);
    run_test(loads_are_evened_over_cpus);
    run_test(a_clock_wraps_around);
    return 0;
}
