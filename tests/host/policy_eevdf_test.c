/* SPDX-License-Identifier: MIT */

/*
 * Tests earliest eligible virtual deadline first: order, time slices, the lag of tasks that come
 * and go, and that no lag exceeds the theorem's bounds.
 */

#include "fair_policies.h"

#include "../../policies/eevdf.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_eevdf};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 1;

#define MS        1000000ll
#define US        1000ll
#define SLICE     (700 * US)
#define TASKS_MAX 8

static struct model_task *fork_nice(struct model *model, int64_t nice, int64_t slice_us)
{
    struct model_task *task = model_fork(model, NULL);
    model_set_attribute(model, task, MODEL_NICE, (uint64_t)nice);
    model_set_attribute(model, task, MODEL_SLICE, (uint64_t)(slice_us * US));
    return task;
}

static struct eevdf_task *state_of(const struct model_task *task)
{
    return task->task.state;
}

static bool competes_in(const struct model *model, const struct model_task *task,
                        const run_queue_t *queue)
{
    const struct eevdf_task *state = state_of(task);
    if (task->place == MODEL_ENDED || !model_knows(model, task) || task->task.cpu != queue->cpu)
        return false;
    return state->member.weight > 0 &&
           (state->place != EEVDF_DELAYED || state->round == eevdf_queue_of(queue)->round);
}

/* Returns the task's lag in ns: now, or for an absent task, when it returns. */
static int64_t lag_of(struct model *model, const struct model_task *task)
{
    run_queue_t *queue = model_queue(model, task->task.cpu);
    const struct lag_member *member = &state_of(task)->member;
    eevdf_advance(queue);
    return competes_in(model, task, queue) ? lag_service(lag_behind(queue, member), member->weight)
                                           : member->lag;
}

/* The lags of each queue sum to 0, so the clock is their mean. */
static void check_clocks(struct model *model)
{
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        run_queue_t *queue = model_queue(model, cpu);
        const struct lag_queue *fair = queue->state;
        uint64_t load = 0;
        int64_t rest = 0;
        for (uint32_t i = 0; i < model->task_count; i++) {
            const struct lag_member *member = &state_of(model->tasks[i])->member;
            if (!competes_in(model, model->tasks[i], queue))
                continue;
            load += member->weight;
            rest -= (int64_t)member->weight * lag_behind(queue, member);
        }
        check(load == fair->sum.load && rest == fair->rest);
        check(rest >= 0 && (load == 0 ? rest == 0 : rest < (int64_t)load));
    }
}

/* ---- order and time slices ---- */

static void equal_tasks_take_turns_of_a_slice(void)
{
    struct model *model = model_new("eevdf", 1, 1);
    struct model_task *one = model_fork(model, NULL);
    struct model_task *other = model_fork(model, NULL);
    run_for(model, SLICE); /* the first requests are half a slice */
    check_picks(model, "1 2");
    for (int turn = 0; turn < 6; turn++)
        run_for(model, SLICE);
    check_picks(model, "1 2 1 2 1 2");
    check(ran(model, one) - SLICE / 2 == 3 * SLICE && ran(model, other) - SLICE / 2 == 3 * SLICE);
    model_free(model);
}

static void shares_are_those_of_nice_levels(void)
{
    struct model *model = model_new("eevdf", 1, 1);
    struct model_task *tasks[] = {fork_nice(model, -5, 0), fork_nice(model, 0, 0),
                                  fork_nice(model, 5, 0), fork_nice(model, 19, 0)};
    uint64_t load = 0;
    run_for(model, 4000 * MS);
    for (int i = 0; i < 4; i++)
        load += nice_weight(tasks[i]->task.nice);
    for (int i = 0; i < 4; i++) {
        int64_t due = 4000 * MS * (int64_t)nice_weight(tasks[i]->task.nice) / (int64_t)load;
        check(size(due - ran(model, tasks[i])) <= SLICE);
    }
    model_free(model);
}

/* The share is the same in more pieces, and a shorter slice is served sooner. */
static void slices_decide_how_soon_not_how_much(void)
{
    struct model *model = model_new("eevdf:linux-6-12", 1, 1);
    struct model_task *slow = fork_nice(model, 0, 8000);
    struct model_task *quick = fork_nice(model, 0, 500);
    run_for(model, 100 * MS);
    uint64_t slow_before = slow->task.selections, quick_before = quick->task.selections;
    int64_t before = ran(model, slow);
    run_for(model, 400 * MS);
    check(size(ran(model, slow) - before - 200 * MS) <= 8 * MS);
    check(slow->task.selections - slow_before < 30);
    check(quick->task.selections - quick_before > 200);
    model_free(model);
}

/* Unless a request is served in one piece, no time slice lasts longer than the shortest slice. */
static void turns_last_as_long_as_the_shortest_slice(void)
{
    struct model *model = model_new("eevdf", 1, 1);
    fork_nice(model, 0, 8000);
    fork_nice(model, 0, 500);
    run_for(model, 20 * MS);
    model_clear_log(model);
    run_for(model, 2 * MS);
    check(strcmp(model->log, "1 2 1 2") == 0 || strcmp(model->log, "2 1 2 1") == 0);
    model_free(model);
}

static void turns_end_at_ticks_if_they_are_to(void)
{
    struct model *model = model_new("eevdf:ticks", 1, 1);
    model_fork(model, NULL);
    model_fork(model, NULL);
    model_clear_log(model);
    run_for(model, 35 * MS);
    check_picks(model, "2 1 2");
    model_free(model);
}

static void a_task_that_yields_lets_others_go_first(void)
{
    struct model *model = model_new("eevdf", 1, 1);
    for (int i = 0; i < 3; i++)
        model_fork(model, NULL);
    model_clear_log(model);
    for (int i = 0; i < 4; i++)
        model_yield(model, 0);
    check_picks(model, "2 3 1 2");
    model_free(model);
}

/* ---- wake-ups ---- */

/* A hog has run alone; then a task with a lag of 0 wakes. Returns that task. */
static struct model_task *wake_with_hog(struct model *model, int64_t nice, int64_t slice_us)
{
    struct model_task *sleeper = fork_nice(model, nice, slice_us);
    model_block(model, 0);
    model_fork(model, NULL);
    run_for(model, 20 * MS + 100 * US);
    model_wake(model, sleeper);
    return sleeper;
}

/* The running task is served in one piece while it is eligible. */
static void a_request_is_not_interrupted(void)
{
    struct model *model = model_new("eevdf", 1, 1);
    struct model_task *sleeper = wake_with_hog(model, -5, 0);
    check(model_running(model, 0) != sleeper->task.pid);
    run_for(model, SLICE);
    check(model_running(model, 0) == sleeper->task.pid);
    model_free(model);
}

static void a_shorter_request_interrupts(void)
{
    struct model *model = model_new("eevdf", 1, 1);
    struct model_task *sleeper = wake_with_hog(model, 0, 200);
    check(model_running(model, 0) == sleeper->task.pid);
    model_free(model);
}

static void without_parity_a_deadline_that_is_earlier_interrupts(void)
{
    struct model *model = model_new("eevdf:paper", 1, 1);
    struct model_task *sleeper = wake_with_hog(model, -5, 0);
    check(model_running(model, 0) == sleeper->task.pid);
    model_free(model);
}

/* ---- lag ---- */

static void a_debt_is_not_slept_off_at_once(void)
{
    struct model *model = model_new("eevdf", 1, 1);
    model_fork(model, NULL);
    struct model_task *sleeper = model_fork(model, NULL);
    run_for(model, SLICE / 2 + 300 * US);
    check(model_running(model, 0) == sleeper->task.pid);
    model_block(model, 0); /* it has run 300 us, of 150 us due */
    run_for(model, 10 * US);
    int64_t debt = lag_of(model, sleeper);
    check(debt > 0); /* the hog had run before it */
    model_wake(model, sleeper);
    check(size(lag_of(model, sleeper) - debt) <= 2);
    model_free(model);
}

/* A task that is ahead of its share still competes, so its debt decreases. */
static void a_debt_ends_by_and_by(void)
{
    struct model *model = model_new("eevdf", 1, 1);
    struct model_task *sleeper = model_fork(model, NULL);
    struct model_task *hog = model_fork(model, NULL);
    run_for(model, 300 * US);
    check(model_running(model, 0) == sleeper->task.pid);
    model_block(model, 0);
    check(size(lag_of(model, sleeper) + 150 * US) <= 2);
    run_for(model, 100 * US);
    check(size(lag_of(model, sleeper) + 100 * US) <= 2);
    check_clocks(model);
    model_wake(model, sleeper); /* keeps its debt */
    check(size(lag_of(model, sleeper) + 100 * US) <= 2);
    check(model_running(model, 0) == hog->task.pid);
    check_clocks(model);
    model_free(model);
}

static void a_long_sleep_ends_a_debt(void)
{
    for (int delay = 0; delay < 2; delay++) {
        struct model *model = model_new("eevdf", 1, 1);
        check(tunable_set(&model->scheduler, model->policy, EEVDF_DELAY, delay) == POLICY_OK);
        struct model_task *sleeper = model_fork(model, NULL);
        model_fork(model, NULL);
        run_for(model, 300 * US);
        model_block(model, 0);
        run_for(model, 50 * MS);
        check(delay ? lag_of(model, sleeper) == 0 : size(lag_of(model, sleeper) + 150 * US) <= 2);
        check_clocks(model);
        model_free(model);
    }
}

/* No sleep of any length earns service, and an idle CPU clears all debts. */
static void alone_nothing_is_owed(void)
{
    struct model *model = model_new("eevdf", 1, 1);
    struct model_task *one = model_fork(model, NULL);
    struct model_task *other = model_fork(model, NULL);
    run_for(model, 300 * US);
    model_block(model, 0);
    run_for(model, 50 * US);
    model_block(model, 0);
    check(model_running(model, 0) == 0);
    check_clocks(model);
    check(load_of(model_queue(model, 0)) == 0);
    model_wake(model, one);
    check(lag_of(model, one) == 0 && model_running(model, 0) == one->task.pid);
    model_wake(model, other);
    check_clocks(model);
    model_free(model);
}

static void what_is_owed_is_kept_while_a_task_is_away(void)
{
    struct model *model = model_new("eevdf", 1, 1);
    model_fork(model, NULL);
    model_fork(model, NULL);
    struct model_task *owed = fork_nice(model, 3, 0);
    run_for(model, SLICE + 50 * US); /* two tasks had their first requests, now it runs */
    check(model_running(model, 0) == owed->task.pid);
    int64_t lag = lag_of(model, owed);
    check(lag > 100 * US);
    model_block(model, 0);
    check(size(lag_of(model, owed) - lag) <= 2);
    run_for(model, 30 * MS);
    model_wake(model, owed);
    check(size(lag_of(model, owed) - lag) <= 4);
    model_free(model);
}

static void a_nice_value_changes_the_part_not_what_is_owed(void)
{
    struct model *model = model_new("eevdf", 1, 1);
    struct model_task *tasks[3];
    int64_t lags[3];
    for (int i = 0; i < 3; i++)
        tasks[i] = model_fork(model, NULL);
    run_for(model, 500 * US);
    for (int i = 0; i < 3; i++)
        lags[i] = lag_of(model, tasks[i]);
    model_set_attribute(model, tasks[0], MODEL_NICE, (uint64_t)-5);
    model_set_attribute(model, tasks[1], MODEL_NICE, 7); /* it runs */
    for (int i = 0; i < 3; i++)
        check(size(lag_of(model, tasks[i]) - lags[i]) <= 16);
    check_clocks(model);
    model_free(model);
}

static void move(struct model *model, struct model_task *task, uint32_t to)
{
    eevdf_dequeue(model_queue(model, task->task.cpu), &task->task);
    task->task.cpu = to;
    eevdf_enqueue(model_queue(model, to), &task->task, ENQUEUE_MOVED);
}

static void what_is_owed_moves_along(void)
{
    struct model *model = model_new("eevdf", 2, 1);
    struct model_task *tasks[5];
    for (int i = 0; i < 5; i++)
        tasks[i] = model_fork(model, NULL);
    run_for(model, 9 * MS);
    for (int i = 0; i < 5; i++) {
        if (tasks[i]->place != MODEL_QUEUED)
            continue;
        int64_t lag = lag_of(model, tasks[i]);
        uint32_t from = tasks[i]->task.cpu;
        move(model, tasks[i], !from);
        check(lag != 0 && size(lag_of(model, tasks[i]) - lag) <= 4);
        move(model, tasks[i], from);
        check(size(lag_of(model, tasks[i]) - lag) <= 8);
    }
    check_clocks(model);
    model_free(model);
}

/* ---- the theorem ---- */

/*
 * On one CPU, with requests in one or several pieces, the lag is at most the longest slice, and a
 * debt is at most the task's slice (Stoica and Abdel-Wahab 1995, theorem 1).
 */
static void lags_are_bounded(void)
{
    for (int trial = 0; trial < 12; trial++) {
        struct model *model = model_new("eevdf", 1, 1);
        check(tunable_set(&model->scheduler, model->policy, EEVDF_PARITY, 1 + trial % 2) ==
              POLICY_OK);
        struct model_task *tasks[TASKS_MAX];
        int64_t longest = SLICE;
        for (int i = 0; i < TASKS_MAX; i++) {
            int64_t slice = 100 + (int64_t)random_below(3000);
            tasks[i] = fork_nice(model, (int64_t)random_below(20) - 10, slice);
            longest = slice * US > longest ? slice * US : longest;
        }
        for (int step = 0; step < 300; step++) {
            run_for(model, (int64_t)random_below(2000) * US);
            for (int i = 0; i < TASKS_MAX; i++) {
                int64_t lag = lag_of(model, tasks[i]);
                check(lag <= longest + 100 && lag >= -state_of(tasks[i])->slice - 100);
            }
        }
        check_clocks(model);
        model_free(model);
    }
}

static void act(struct model *model, struct model_task **tasks)
{
    struct model_task *task = tasks[random_below(TASKS_MAX)];
    switch (random_below(6)) {
    case 0:
    case 1:
        block_or_wake(model, task);
        break;
    case 2:
        if (model->cpus[0].current)
            model_yield(model, 0);
        break;
    case 3:
        model_set_attribute(model, task, MODEL_NICE, random_below(40) - 20);
        break;
    case 4:
        model_set_attribute(model, task, MODEL_SLICE, random_below(4000) * US);
        break;
    default:
        run_for(model, (int64_t)random_below(3000) * US);
    }
}

/* Random operations of tasks, on one CPU or several. */
static void lags_always_sum_to_zero(void)
{
    static const char *const choices[] = {"eevdf", "eevdf:ticks", "eevdf:paper"};
    for (uint32_t trial = 0; trial < 12; trial++) {
        struct model *model = model_new(choices[trial % 3], 1 + trial % 4, 1);
        struct model_task *tasks[TASKS_MAX];
        for (int i = 0; i < TASKS_MAX; i++)
            tasks[i] = model_fork(model, NULL);
        for (int step = 0; step < 1500; step++) {
            act(model, tasks);
            check_clocks(model);
            for (int i = 0; i < TASKS_MAX; i++)
                check(size(lag_of(model, tasks[i])) < 2000 * MS);
        }
        for (int i = 0; i < TASKS_MAX; i++)
            model_end(model, tasks[i]);
        model_free(model);
    }
}

static void switching_to_it_and_away_loses_no_task(void)
{
    struct model *model = model_new("eevdf", 2, 1);
    struct model_task *tasks[TASKS_MAX];
    for (int i = 0; i < TASKS_MAX; i++)
        tasks[i] = model_fork(model, NULL);
    run_for(model, 15 * MS);
    model_block(model, 0);
    model_switch(model, "eevdf:paper");
    run_for(model, 15 * MS);
    check_clocks(model);
    int64_t before = 0, after = 0;
    for (int i = 0; i < TASKS_MAX; i++)
        before += ran(model, tasks[i]);
    run_for(model, 10 * MS);
    for (int i = 0; i < TASKS_MAX; i++)
        after += ran(model, tasks[i]);
    check(after - before == 20 * MS);
    model_free(model);
}

int main(void)
{
    run_test(equal_tasks_take_turns_of_a_slice);
    run_test(shares_are_those_of_nice_levels);
    run_test(slices_decide_how_soon_not_how_much);
    run_test(turns_last_as_long_as_the_shortest_slice);
    run_test(turns_end_at_ticks_if_they_are_to);
    run_test(a_task_that_yields_lets_others_go_first);
    run_test(a_request_is_not_interrupted);
    run_test(a_shorter_request_interrupts);
    run_test(without_parity_a_deadline_that_is_earlier_interrupts);
    run_test(a_debt_is_not_slept_off_at_once);
    run_test(a_debt_ends_by_and_by);
    run_test(a_long_sleep_ends_a_debt);
    run_test(alone_nothing_is_owed);
    run_test(what_is_owed_is_kept_while_a_task_is_away);
    run_test(a_nice_value_changes_the_part_not_what_is_owed);
    run_test(what_is_owed_moves_along);
    run_test(lags_are_bounded);
    run_test(lags_always_sum_to_zero);
    run_test(switching_to_it_and_away_loses_no_task);
    return 0;
}
