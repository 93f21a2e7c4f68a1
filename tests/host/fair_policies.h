/* SPDX-License-Identifier: MIT */
#ifndef TESTS_HOST_FAIR_POLICIES_H
#define TESTS_HOST_FAIR_POLICIES_H

/* Common parts of the tests for policies with proportional shares. */

#include "policy_harness.h"
#include "random.h"

static inline void run_for(struct model *model, int64_t ns)
{
    model_run_for(model, (uint64_t)ns);
}

/* Nanoseconds until now. */
static inline int64_t ran(struct model *model, const struct model_task *task)
{
    const run_queue_t *queue = model_queue(model, task->task.cpu);
    bool runs = task->place == MODEL_RUNNING;
    return (int64_t)(runs ? run_time_now(queue, &task->task) : task->task.run_time);
}

static inline int64_t size(int64_t number)
{
    return number < 0 ? -number : number;
}

/* Blocks a running task, or wakes a blocked task. */
static inline void block_or_wake(struct model *model, struct model_task *task)
{
    uint32_t cpu = (uint32_t)random_below(model->scheduler.cpus);
    if (random_below(2) && task->place == MODEL_BLOCKED)
        model_wake(model, task);
    else if (model->cpus[cpu].current)
        model_block(model, cpu);
}

/* ---- common promises of cfs and stride; the test provides the policy's parts ---- */

struct fair {
    struct model *(*model_of)(uint32_t cpus);
    enum model_attribute attribute;                        /* sets the shares */
    uint32_t highest;                                      /* highest value in these tests */
    uint32_t ticks_off;                                    /* tolerated error of a share */
    uint64_t per_ns;                                       /* clock units per nanosecond */
    uint64_t *(*clock)(struct model *model, uint32_t cpu); /* clock of a queue */
    void (*check_totals)(struct model *model);
};

static const struct fair fair;

static inline struct model_task *fork_with(struct model *model, uint32_t value)
{
    struct model_task *task = model_fork(model, NULL);
    model_set_attribute(model, task, fair.attribute, value);
    return task;
}

/* A parent gains no time from others by forking children that live for a moment. */
static inline void forking_is_no_way_to_more(void)
{
    struct model *model = fair.model_of(1);
    struct model_task *victim = fork_with(model, 5);
    fork_with(model, 5);
    for (int round = 0; round < 3000; round++) {
        model_tick(model);
        struct model_task *task = model->cpus[0].current;
        if (task == victim || random_below(3) == 0)
            continue;
        model_fork(model, task); /* the child takes over */
        if (task != model->tasks[1])
            model_end(model, task);
        for (uint32_t i = 2; i < model->task_count - 1; i++) {
            if (model->tasks[i]->place != MODEL_ENDED)
                model_end(model, model->tasks[i]);
        }
    }
    /* Three tasks compete at any time: the victim, the parent and a child. */
    check(victim->task.run_time >= 999 * MODEL_TICK_NS);
    model_free(model);
}

static inline void shares_may_change_at_any_time(void)
{
    for (int place = 0; place < 3; place++) { /* running, queued, blocked */
        struct model *model = fair.model_of(1);
        struct model_task *one = fork_with(model, 2);
        struct model_task *other = fork_with(model, 2);
        while (model->cpus[0].current != (place == 1 ? other : one))
            model_tick(model);
        if (place == 2)
            model_block(model, 0);
        model_set_attribute(model, one, fair.attribute, 6);
        if (place == 2)
            model_wake(model, one);
        uint64_t run_time = one->task.run_time, others = other->task.run_time;
        model_ticks(model, 4000);
        run_time = one->task.run_time - run_time;
        others = other->task.run_time - others;
        check(run_time + others == 4000 * MODEL_TICK_NS);
        check(run_time >= (3000 - fair.ticks_off) * MODEL_TICK_NS);
        check(run_time <= (3000 + fair.ticks_off) * MODEL_TICK_NS);
        model_free(model);
    }
}

/* Tasks start, end, sleep and move; a queue counts only the shares of its present tasks. */
static inline void totals_are_right(void)
{
    struct model *model = fair.model_of(3);
    for (int i = 0; i < 6; i++)
        fork_with(model, 1 + (uint32_t)random_below(fair.highest));
    for (int step = 0; step < 5000; step++) {
        uint32_t cpu = (uint32_t)random_below(3);
        struct model_task *task = model->tasks[random_below(model->task_count)];
        uint64_t act = random_below(10);
        if (act < 4)
            model_tick(model);
        else if (act < 6 && model->cpus[cpu].current)
            model_sleep(model, cpu, random_below(9));
        else if (act == 6 && model->cpus[cpu].current)
            model_yield(model, cpu);
        else if (act == 7 && model->task_count < 40)
            model_fork(model, model->cpus[cpu].current);
        else if (act == 8 && task->place != MODEL_ENDED)
            model_set_attribute(model, task, fair.attribute, 1 + random_below(fair.highest));
        else if (act == 9 && task->place != MODEL_ENDED && model->task_count > 20)
            model_end(model, task);
        fair.check_totals(model);
    }
    model_free(model);
}

/* A run that starts just below the clock's maximum equals a run that starts at 0. */
static inline void a_clock_wraps_around(void)
{
    uint64_t hash = 0;
    for (int from_end = 0; from_end < 2; from_end++) {
        struct model *model = fair.model_of(1);
        if (from_end)
            *fair.clock(model, 0) = UINT64_MAX - 20 * MODEL_TICK_NS * fair.per_ns;
        for (uint32_t i = 1; i <= 5; i++)
            fork_with(model, i);
        for (int round = 0; round < 1000; round++) {
            model_tick(model);
            if (round % 3 == 0)
                model_sleep(model, 0, (uint32_t)(1 + round % 7));
        }
        check(!from_end || model->pick_hash == hash);
        hash = model->pick_hash;
        model_free(model);
    }
}

#endif
