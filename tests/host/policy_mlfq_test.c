/* SPDX-License-Identifier: MIT */

/*
 * Tests the multi-level feedback queue: each rule tick by tick, the studies' presets, and study 3's
 * adversaries, with the policies that they break and the policies that stop them.
 */

#include "policy_harness.h"
#include "random.h"

#include "../../policies/mlfq.c"
#include "../../policies/rr.c"
#include "../../policies/studies/study-mlfq.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_rr, &policy_mlfq, &policy_study_mlfq};
const uint32_t policies_count = 2;
const uint32_t policy_sources_count = 3;

#define TICKS(count) ((count) * MODEL_TICK_NS)

/* ---- machines and programs ---- */

/* Sets a tunable before any task is forked. */
static void set_tunable(struct model *model, const char *name, int64_t value)
{
    uint32_t index = model_find_tunable(model, name);
    check(tunable_set(&model->scheduler, model->policy, index, value) == POLICY_OK);
    policy_init_scheduler(model->policy, &model->scheduler);
}

static void fork_many(struct model *model, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        model_fork(model, NULL);
}

static struct model *machine_with(const char *policy, uint32_t cpus, uint32_t count)
{
    struct model *model = model_new(policy, cpus, 1);
    fork_many(model, count);
    return model;
}

static uint64_t level(const struct model *model, int32_t pid)
{
    return model->tasks[pid - 1]->task.level;
}

static uint64_t run_time(const struct model *model, int32_t pid)
{
    return model->tasks[pid - 1]->task.run_time;
}

/* The CPU's task sleeps until `time`. */
static void sleep_until(struct model *model, uint32_t cpu, uint64_t time)
{
    struct model_task *task = model->cpus[cpu].current;
    task->wake_at = time;
    task->wake_order = model->timers++;
    task->wake_cpu = cpu;
    model_block(model, cpu);
}

/*
 * Describes CPU 0 during the next ticks: "1@3x2" is a slice of task 1 at level 3 for two ticks. If
 * the level changes within a slice, it appears as two.
 */
static const char *timeline(struct model *model, uint32_t ticks)
{
    static char text[4096];
    size_t length = 0;
    uint64_t selections = 0;
    int32_t pid = -1;
    uint64_t at = 0;
    uint32_t lasted = 0;
    text[0] = '\0';
    for (uint32_t tick = 0; tick <= ticks; tick++) {
        const struct model_task *task = model->cpus[0].current;
        int32_t now = task ? task->task.pid : 0;
        bool same = tick < ticks && now == pid &&
                    (!task || (task->task.selections == selections && task->task.level == at));
        if (!same && lasted > 0)
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%d@%llux%u",
                                       length ? " " : "", pid, (unsigned long long)at, lasted);
        lasted = same ? lasted + 1 : 1;
        pid = now;
        at = task ? task->task.level : 0;
        selections = task ? task->task.selections : 0;
        if (tick < ticks)
            model_tick(model);
    }
    return text;
}

#define check_timeline(model, ticks, expected)                                                     \
    do {                                                                                           \
        const char *was = timeline(model, ticks);                                                  \
        if (strcmp(was, expected) != 0)                                                            \
            fprintf(stderr, "was:      %s\nexpected: %s\n", was, expected);                        \
        check(strcmp(was, expected) == 0);                                                         \
    } while (0)

/* All tasks are at level 0 and stay there. */
static struct model *sunk_machine(uint32_t count)
{
    struct model *model = model_new("mlfq", 1, 1);
    set_tunable(model, "boost", 0);
    fork_many(model, count);
    model_ticks(model, 57 * count);
    for (uint32_t i = 0; i < count; i++)
        check(model->tasks[i]->task.level == 0);
    return model;
}

/* ---- presets four-quanta and whole-quanta ---- */

static void a_slice_lasts_the_whole_quantum(void)
{
    struct model *model = machine_with("mlfq:whole-quanta", 1, 3);
    check(policy_mlfq.time_slice(&model->scheduler, &model->tasks[0]->task) == 1);
    check_timeline(model, 121, "1@3x1 2@3x1 3@3x1 1@2x2 2@2x2 3@2x2 1@1x4 2@1x4 3@1x4 1@0x100");
    check(policy_mlfq.time_slice(&model->scheduler, &model->tasks[0]->task) == UINT64_MAX);
    model_free(model);
}

static void who_gives_up_its_quantum_has_a_new_one(void)
{
    struct model *model = machine_with("mlfq:four-quanta", 1, 1);
    model_tick(model);
    model_ticks(model, 2);
    check(level(model, 1) == 1); /* quantum 4 */
    for (int i = 0; i < 5; i++) {
        model_ticks(model, 3);
        model_yield(model, 0);
        check(level(model, 1) == 1);
        model_ticks(model, 3);
        model_sleep(model, 0, 2);
        model_ticks(model, 2);
        check(model_running(model, 0) == 1 && level(model, 1) == 1);
    }
    model_ticks(model, 3);
    check(level(model, 1) == 1);
    model_tick(model);
    check(level(model, 1) == 0);
    model_free(model);
}

static void an_interrupted_quantum_goes_on(void)
{
    struct model *model = machine_with("mlfq:whole-quanta", 1, 2);
    model_ticks(model, 6); /* both are at level 1 */
    check_timeline(model, 1, "1@1x1");
    model_fork(model, NULL); /* preempts at the tick, not at once */
    check_timeline(model, 14, "1@1x1 3@3x1 3@2x2 1@1x2 2@1x4 3@1x4");
    model_free(model);
}

static void nobody_is_ever_boosted(void)
{
    struct model *model = machine_with("mlfq:four-quanta", 1, 1);
    model_ticks(model, 7);
    for (int i = 0; i < 2000; i++) {
        check(level(model, 1) == 0);
        model_tick(model);
    }
    model_free(model);
}

static void a_slice_is_a_tick_and_a_quantum_demotes(void)
{
    struct model *model = machine_with("mlfq:four-quanta", 1, 2);
    check(policy_mlfq.time_slice(&model->scheduler, &model->tasks[0]->task) == 1);
    check_timeline(model, 2, "1@3x1 2@3x1");
    check_timeline(model, 4, "1@2x1 2@2x1 1@2x1 2@2x1");
    check_timeline(model, 8, "1@1x1 2@1x1 1@1x1 2@1x1 1@1x1 2@1x1 1@1x1 2@1x1");
    check_timeline(model, 4, "1@0x1 2@0x1 1@0x1 2@0x1");
    model_free(model);
}

/*
 * Tasks 1 and 2 are at level 0, and new tasks arrive continuously. Returns the longest wait of the
 * two.
 */
static uint64_t longest_wait_under_barrage(int64_t starved_after)
{
    struct model *model = model_new("mlfq:four-quanta", 1, 1);
    set_tunable(model, "starved_after", starved_after);
    fork_many(model, 2);
    model_ticks(model, 14);
    uint64_t longest = 0;
    fork_many(model, 1);
    for (uint32_t tick = 0; tick < 100; tick++) {
        model_tick(model);
        for (int i = 0; i < 2; i++) {
            uint64_t waited = model->now - model->tasks[i]->task.queued_since;
            if (model->tasks[i]->place == MODEL_QUEUED && waited > longest)
                longest = waited;
        }
        struct model_task *current = model->cpus[0].current;
        if (current->task.pid > 2 && current->task.run_time >= MODEL_TICK_NS) {
            fork_many(model, 1);
            model_end(model, current);
        }
    }
    model_free(model);
    return longest;
}

static void a_starved_task_rises_to_the_top(void)
{
    check(longest_wait_under_barrage(0) >= TICKS(98));
    uint64_t longest = longest_wait_under_barrage(10);
    check(longest >= TICKS(9) && longest <= TICKS(12)); /* checked after each tick */
}

/* Task 3, at the top level, waits for task 1, which is at level 0. Task 2 computes at level 2. */
static void a_task_is_served_at_the_level_of_its_waiter(void)
{
    for (int64_t lend = 0; lend <= 1; lend++) {
        struct model *model = model_new("mlfq:four-quanta", 1, 1);
        set_tunable(model, "lend", lend);
        fork_many(model, 1);
        model_ticks(model, 8);
        fork_many(model, 1);
        model_ticks(model, 2);
        check(level(model, 2) == 2);
        fork_many(model, 1);
        model_tick(model);
        check(model_running(model, 0) == 3);
        model_block_for(model, 0, model->tasks[0]);
        check(model_running(model, 0) == (lend ? 1 : 2));
        check(level(model, 1) == (lend ? 3 : 0));
        model_tick(model);
        check(model_running(model, 0) == (lend ? 1 : 2));
        model_wake(model, model->tasks[2]); /* task 1 returns to its own level, and is preempted */
        if (!lend)
            model_tick(model);
        check(model_running(model, 0) == 3);
        model_block(model, 0);
        check(model_running(model, 0) == 2);
        model_block(model, 0);
        check(model_running(model, 0) == 1 && model->tasks[0]->task.lent == 0);
        model_tick(model);
        check(level(model, 1) == 0);
        model_free(model);
    }
}

/* ---- preset allotment-boost ---- */

/* Study 4, figure 7: three CPU-bound processes. */
static void figure_7_comes_out_tick_by_tick(void)
{
    struct model *model = machine_with("mlfq:allotment-boost", 1, 3);
    static const char top[] = "1@3x2 2@3x2 3@3x2 1@3x2 2@3x2 3@3x2 "
                              "1@3x2 2@3x2 3@3x2 1@3x2 2@3x2 3@3x2";
    check_timeline(model, 24, top);
    check_timeline(model, 48,
                   "1@2x4 2@2x4 3@2x4 1@2x4 2@2x4 3@2x4 "
                   "1@2x4 2@2x4 3@2x4 1@2x4 2@2x4 3@2x4");
    check_timeline(model, 96,
                   "1@1x8 2@1x8 3@1x8 1@1x8 2@1x8 3@1x8 "
                   "1@1x8 2@1x8 3@1x8 1@1x8 2@1x8 3@1x8");
    check_timeline(model, 480 - 168,
                   "1@0x32 2@0x32 3@0x32 1@0x32 2@0x32 3@0x32 1@0x32 2@0x32 3@0x32 1@0x24");
    /* The boost ends the slice of 1 eight ticks early; it is queued behind the waiting tasks. */
    check_timeline(model, 24,
                   "2@3x2 3@3x2 1@3x2 2@3x2 3@3x2 1@3x2 "
                   "2@3x2 3@3x2 1@3x2 2@3x2 3@3x2 1@3x2");
    check_timeline(model, 12, "2@2x4 3@2x4 1@2x4");
    model_free(model);
}

/* Study 4, figure 8: the same under round-robin. */
static void figure_8_comes_out_tick_by_tick(void)
{
    static const char *const choices[] = {"rr", "rr:table-scan"};
    for (size_t i = 0; i < 2; i++) {
        struct model *model = machine_with(choices[i], 1, 3);
        check_timeline(model, 9, "1@0x1 2@0x1 3@0x1 1@0x1 2@0x1 3@0x1 1@0x1 2@0x1 3@0x1");
        model_free(model);
    }
}

static void allotments_are_counted_over_all_stays(void)
{
    struct model *model = machine_with("mlfq:allotment-boost", 1, 1);
    for (int i = 0; i < 7; i++) {
        model_tick(model);
        model_sleep(model, 0, 3);
        model_ticks(model, 3);
        check(level(model, 1) == 3);
    }
    model_tick(model);
    check(level(model, 1) == 2);
    for (int i = 0; i < 15; i++) {
        model_tick(model);
        model_yield(model, 0);
        check(level(model, 1) == 2);
    }
    model_tick(model);
    check(level(model, 1) == 1);
    model_free(model);
}

/*
 * Only the task that runs at a tick pays, for the complete tick. The study's kernel can be gamed in
 * the same way.
 */
static void who_leaves_before_the_tick_does_not_pay(void)
{
    struct model *model = machine_with("mlfq:allotment-boost", 1, 1);
    for (int i = 0; i < 100; i++) {
        model_advance(model, MODEL_TICK_NS / 10 * 9);
        sleep_until(model, 0, model->now + MODEL_TICK_NS / 10);
        model_advance(model, MODEL_TICK_NS / 10);
        model_tick_cpu(model, 0);
    }
    check(level(model, 1) == 3 && run_time(model, 1) == TICKS(90));
    model_free(model);
}

static void a_slice_goes_on_after_sleep(void)
{
    struct model *model = machine_with("mlfq:allotment-boost", 1, 2);
    model_tick(model);        /* 1 of 2 */
    model_sleep(model, 0, 2); /* 2 has a whole slice */
    check_timeline(model, 5, "2@3x2 1@3x1 2@3x2");
    model_free(model);
}

static void a_higher_level_waits_for_the_tick_and_no_longer(void)
{
    struct model *model = machine_with("mlfq:allotment-boost", 1, 2);
    model_ticks(model, 2 * 56 + 5); /* 1, in its slice of 32 at level 0 */
    check(model_running(model, 0) == 1 && level(model, 1) == 0);
    model_clear_log(model);
    model_advance(model, MODEL_TICK_NS / 2);
    model_fork(model, NULL);
    check_picks(model, "");
    model_advance(model, MODEL_TICK_NS / 2);
    model_tick_cpu(model, 0);
    check_picks(model, "3");
    model_block(model, 0);
    check_picks(model, "1");
    check_timeline(model, 26 + 32, "1@0x26 2@0x32"); /* its slice continued */
    model_free(model);
}

static void with_preempt_0_it_waits_for_the_end_of_the_turn(void)
{
    struct model *model = model_new("mlfq:allotment-boost", 1, 1);
    set_tunable(model, "preempt", 0);
    fork_many(model, 2);
    model_ticks(model, 2 * 56 + 5);
    model_fork(model, NULL);
    check_timeline(model, 29, "1@0x27 3@3x2");
    model_free(model);
}

/* If slices do not divide the allotment, a task is demoted at once, and its slice ends. */
static void who_sinks_within_a_slice_has_had_its_turn(void)
{
    struct model *model = model_new("mlfq:allotment-boost", 1, 1);
    set_tunable(model, "allotment_3", 3);
    fork_many(model, 2);
    check_timeline(model, 14, "1@3x2 2@3x2 1@3x1 2@3x1 1@2x4 2@2x4");
    model_free(model);
}

static void the_boost_is_for_blocked_ones_too(void)
{
    struct model *model = machine_with("mlfq:allotment-boost", 1, 3);
    model_ticks(model, 200);
    struct model_task *sleeper = model->cpus[0].current;
    check(sleeper->task.level == 0);
    model_block(model, 0);
    model_ticks(model, 480 - 200 + 40); /* the two others were demoted again */
    check(model->cpus[0].current->task.level == 2);
    model_wake(model, sleeper);
    check(sleeper->task.level == 3);
    model_tick(model);
    check(model->cpus[0].current == sleeper);
    check_timeline(model, 8,
                   model->tasks[0] == sleeper   ? "1@3x2 1@3x2 1@3x2 1@3x2"
                   : model->tasks[1] == sleeper ? "2@3x2 2@3x2 2@3x2 2@3x2"
                                                : "3@3x2 3@3x2 3@3x2 3@3x2");
    check(sleeper->task.level == 2);
    model_free(model);
}

/* First the tasks that waited at the top, then lower levels in order, then the running task. */
static void the_boost_keeps_the_order(void)
{
    struct model *model = model_new("mlfq:allotment-boost", 1, 1);
    fork_many(model, 6);
    for (int32_t pid = 1; pid <= 5; pid++)
        model_block(model, 0);
    static const uint32_t wakes[] = {2, 1, 3, 4, 5};
    model_ticks(model, 8 + 16 + 32); /* 6 is at 0 */
    model_sleep(model, 0, 480 - 56 - 1);
    model_wake(model, model->tasks[2 - 1]); /* 2 is demoted to 0, then sleeps */
    model_ticks(model, 56);
    model_block(model, 0);
    model_wake(model, model->tasks[1 - 1]); /* 1 to 1 */
    model_ticks(model, 24);
    model_block(model, 0);
    for (int32_t pid = 3; pid <= 4; pid++) { /* 3 and 4 to 2 */
        model_wake(model, model->tasks[pid - 1]);
        model_ticks(model, 8);
        model_block(model, 0);
    }
    while (model->now < TICKS(478))
        model_tick(model);
    for (size_t i = 0; i < 5; i++) /* 2@0, 1@1, 3@2, 4@2, 5@3 */
        model_wake(model, model->tasks[wakes[i] - 1]);
    check(model_running(model, 0) == 2); /* the CPU was idle; it is preempted at the tick */
    check(level(model, 2) == 0 && level(model, 1) == 1 && level(model, 3) == 2);
    model_clear_log(model);
    model_tick(model); /* 5 runs; 6 wakes at level 0, behind 2, whose slice was cut */
    check_picks(model, "5");
    check_timeline(model, 13, "5@3x1 3@3x2 4@3x2 1@3x2 2@3x2 6@3x2 5@3x2");
    model_free(model);
}

/* ---- the default's rules ---- */

static void slices_and_allotments_are_those_of_the_level(void)
{
    struct model *model = machine_with("mlfq", 1, 2);
    check_timeline(model, 16, "1@3x2 2@3x2 1@3x2 2@3x2 1@3x2 2@3x2 1@3x2 2@3x2");
    check_timeline(model, 32, "1@2x4 2@2x4 1@2x4 2@2x4 1@2x4 2@2x4 1@2x4 2@2x4");
    check_timeline(model, 64, "1@1x8 2@1x8 1@1x8 2@1x8 1@1x8 2@1x8 1@1x8 2@1x8");
    check_timeline(model, 64, "1@0x32 2@0x32");
    model_free(model);
}

static void levels_are_1_to_8(void)
{
    struct model *model = model_new("mlfq", 1, 1);
    set_tunable(model, "levels", 1);
    fork_many(model, 2);
    check_timeline(model, 96, "1@0x32 2@0x32 1@0x32");
    model_free(model);

    model = model_new("mlfq", 1, 1);
    set_tunable(model, "levels", 8);
    fork_many(model, 1);
    static const uint32_t allotments[] = {4, 4, 4, 4, 8, 16, 32};
    for (uint32_t i = 0; i < 7; i++) {
        for (uint32_t tick = 0; tick < allotments[i]; tick++) {
            check(level(model, 1) == 7 - i);
            model_tick(model);
        }
    }
    check(level(model, 1) == 0);
    model_ticks(model, 480 - 72);
    check(level(model, 1) == 7);
    model_free(model);
}

static void a_limit_of_0_is_none(void)
{
    struct model *model = model_new("mlfq", 1, 1);
    set_tunable(model, "allotment_3", 0);
    set_tunable(model, "slice_3", 0);
    fork_many(model, 2);
    check_timeline(model, 479, "1@3x479");
    model_free(model);
}

static void a_higher_level_takes_over_at_once(void)
{
    struct model *model = machine_with("mlfq", 1, 1);
    model_ticks(model, 60);
    model_clear_log(model);
    model_advance(model, MODEL_TICK_NS / 2);
    model_fork(model, NULL);
    check_picks(model, "2");
    model_block(model, 0);
    check_picks(model, "1");
    model_free(model);
}

static void an_equal_does_not_take_over(void)
{
    struct model *model = machine_with("mlfq", 1, 1);
    model_tick(model);
    model_clear_log(model);
    model_fork(model, NULL);
    check_picks(model, "");
    model_tick(model);
    check_picks(model, "2");
    model_free(model);
}

/* A slice ends at the tick nearest to its nominal end. */
static void a_task_picked_within_a_tick_pays_for_what_it_ran(void)
{
    struct model *model = machine_with("mlfq", 1, 2);
    model_advance(model, MODEL_TICK_NS / 10 * 7);
    model_block(model, 0); /* 1 */
    model_advance(model, MODEL_TICK_NS / 10 * 3);
    model_tick_cpu(model, 0);
    check(feedback_task_of(&model->tasks[1]->task)->allotment_used == MODEL_TICK_NS / 10 * 3);
    check(feedback_task_of(&model->tasks[0]->task)->allotment_used == MODEL_TICK_NS / 10 * 7);
    model_wake(model, model->tasks[0]);
    model_clear_log(model);
    model_tick(model);
    check_picks(model, ""); /* 1.3 of 2 */
    model_tick(model);
    check_picks(model, "1"); /* 2.3 */
    model_free(model);
}

static void a_child_starts_where_its_parent_is(void)
{
    struct model *model = machine_with("mlfq", 1, 1);
    model_ticks(model, 8 + 5);
    model_advance(model, MODEL_TICK_NS / 2);
    struct model_task *child = model_fork(model, model->tasks[0]);
    check(level(model, 1) == 2 && child->task.level == 2);
    check(feedback_task_of(&child->task)->allotment_used == TICKS(5) + MODEL_TICK_NS / 2);
    struct model_task *orphan = model_fork(model, NULL);
    check(orphan->task.level == 3);
    model_free(model);

    model = sunk_machine(1); /* the child inherits the base, not the credit level */
    model_sleep(model, 0, 64);
    model_ticks(model, 64);
    check(level(model, 1) == 4);
    check(model_fork(model, model->tasks[0])->task.level == 0);
    model_free(model);

    model = machine_with("mlfq:allotment-boost", 1, 1);
    model_ticks(model, 8 + 5);
    check(model_fork(model, model->tasks[0])->task.level == 3);
    model_free(model);
}

static void release_2_raises_whoever_blocks(void)
{
    struct model *model = model_new("mlfq", 1, 1);
    set_tunable(model, "release", 2);
    fork_many(model, 1);
    model_ticks(model, 60);
    for (uint64_t expected = 1; expected <= 4; expected++) {
        model_block(model, 0);
        model_wake(model, model->tasks[0]);
        check(level(model, 1) == (expected < 3 ? expected : 3));
    }
    model_ticks(model, 7);
    model_yield(model, 0);
    model_ticks(model, 7);
    check(level(model, 1) == 3); /* yielding renewed its allotment */
    model_tick(model);
    check(level(model, 1) == 2);
    model_yield(model, 0);
    check(level(model, 1) == 2);
    model_free(model);
}

/* The interrupted slice belonged to another level. */
static void who_sinks_when_it_blocks_has_a_new_slice(void)
{
    struct model *model = model_new("mlfq", 1, 1);
    set_tunable(model, "keep_slice", 1);
    fork_many(model, 1);
    model_ticks(model, 7);
    model_advance(model, MODEL_TICK_NS / 10 * 9);
    model_block(model, 0); /* 7.9 of 8 */
    model_wake(model, model->tasks[0]);
    check(level(model, 1) == 2 && feedback_task_of(&model->tasks[0]->task)->slice_used == 0);
    model_free(model);
}

/* ---- credit ---- */

static void who_wakes_with_a_full_purse_is_served_above_all(void)
{
    static const struct {
        uint32_t ticks;
        uint64_t level;
        uint64_t credit;
    } cases[] = {
        {1, 0, TICKS(1) / 16}, {31, 0, TICKS(31) / 16}, {32, 4, TICKS(1)}, {5000, 4, TICKS(1)}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model *model = sunk_machine(1);
        model_sleep(model, 0, cases[i].ticks);
        model_ticks(model, cases[i].ticks);
        check(level(model, 1) == cases[i].level);
        check(mlfq_task_of(&model->tasks[0]->task)->credit == cases[i].credit);
        check(policy_mlfq.time_slice(&model->scheduler, &model->tasks[0]->task) ==
              (cases[i].level == 4 ? 2 : 32));
        model_free(model);
    }
}

static void credit_is_limited_by_the_purse(void)
{
    struct model *model = sunk_machine(1);
    for (int i = 0; i < 3; i++) {
        model_sleep(model, 0, 1000);
        model_ticks(model, 1000);
    }
    check(level(model, 1) == 4 && mlfq_task_of(&model->tasks[0]->task)->credit == TICKS(2));
    model_ticks(model, 2);
    check(level(model, 1) == 4);
    model_tick(model);
    check(level(model, 1) == 0);
    model_free(model);
}

/* The task does not wait for all tasks that the boost moved to the top. */
static void the_boost_takes_nobody_from_the_credit_level(void)
{
    struct model *model = machine_with("mlfq", 1, 20);
    struct model_task *sleeper = model->cpus[0].current;
    model_sleep(model, 0, 470);
    model_ticks(model, 470);
    check(sleeper->task.level == 4 && model->cpus[0].current == sleeper);
    model_fork(model, NULL);
    model_sleep(model, 0, 20);
    model_ticks(model, 20);
    check(sleeper->task.level == 4 && model->cpus[0].current == sleeper);
    for (uint32_t i = 1; i < 4; i++)
        check(feedback_task_of(&model->tasks[i]->task)->epoch == 1 ||
              model->tasks[i]->place == MODEL_QUEUED);
    model_free(model);
}

/* A task that waits there during the boost is not lost. */
static void a_boost_while_one_waits_at_the_credit_level(void)
{
    struct model *model = model_new("mlfq", 1, 1);
    fork_many(model, 3);
    model_block(model, 0); /* 1 */
    model_block(model, 0); /* 2 */
    model_ticks(model, 479);
    model_wake(model, model->tasks[0]);
    model_wake(model, model->tasks[1]);
    check(model_running(model, 0) == 1 && level(model, 2) == 4);
    check_timeline(model, 5, "1@4x1 2@4x2 1@4x1 3@3x1");
    model_free(model);
}

static void who_spends_its_credit_falls_to_its_base(void)
{
    struct model *model = sunk_machine(1);
    model_sleep(model, 0, 64);
    model_ticks(model, 64); /* with a tick of credit */
    check(level(model, 1) == 4);
    model_tick(model);
    check(level(model, 1) == 4);
    model_tick(model);
    check(level(model, 1) == 0);
    model_free(model);
}

/* At the top, the task spends its credit and keeps its allotment. */
static void who_uses_little_never_sinks(void)
{
    struct model *model = model_new("mlfq", 1, 1);
    set_tunable(model, "boost", 0);
    fork_many(model, 1);
    for (int i = 0; i < 1000; i++) {
        model_tick(model); /* 1 of 21 ticks */
        model_sleep(model, 0, 20);
        model_ticks(model, 20);
        check(level(model, 1) >= 3);
    }
    model_free(model);
}

/* ---- adversaries ---- */

/*
 * Task 1 leaves the CPU after nine tenths of a tick, by sleeping until the tick or by yielding; the
 * other tasks never do.
 */
static void play_gamer(struct model *model, uint32_t ticks, bool sleeps)
{
    for (uint32_t tick = 0; tick < ticks; tick++) {
        model_advance(model, MODEL_TICK_NS / 10 * 9);
        if (model_running(model, 0) == 1 && sleeps)
            sleep_until(model, 0, model->now + MODEL_TICK_NS / 10);
        else if (model_running(model, 0) == 1)
            model_yield(model, 0);
        model_advance(model, MODEL_TICK_NS / 10);
        model_tick_cpu(model, 0);
    }
}

static double gamer_part(const char *policy, uint32_t others, bool sleeps)
{
    const uint32_t ticks = 20 * 480;
    struct model *model = machine_with(policy, 1, 1 + others);
    play_gamer(model, ticks, sleeps);
    double part = (double)run_time(model, 1) / (double)TICKS(ticks);
    model_free(model);
    return part;
}

static void four_quanta_can_be_gamed(void)
{
    for (uint32_t others = 1; others <= 8; others *= 2)
        check(gamer_part("mlfq:four-quanta", others, true) > 0.89);
    for (uint32_t others = 1; others <= 8; others *= 2)
        check(gamer_part("mlfq:whole-quanta", others, true) > 0.89);
}

static void the_default_cannot_be_gamed(void)
{
    for (uint32_t others = 1; others <= 8; others++) {
        check(gamer_part("mlfq", others, true) <= 1.0 / (1 + others));
        check(gamer_part("mlfq", others, false) <= 1.0 / (1 + others));
    }
}

/* Sleeps until it may rise and runs until it falls, which uses credit best. */
static void sleeping_for_credit_gains_nothing(void)
{
    for (uint32_t sleep = 16; sleep <= 128; sleep *= 2) {
        struct model *model = sunk_machine(2);
        uint64_t before = run_time(model, 1);
        uint64_t start = model->now;
        while (model_running(model, 0) != 1)
            model_tick(model);
        while (model->now < start + TICKS(20000)) {
            if (model_running(model, 0) == 1) {
                model_sleep(model, 0, sleep);
                model_tick(model);
            } else {
                model_tick(model);
            }
            while (model_running(model, 0) == 1 && level(model, 1) > 0)
                model_tick(model);
        }
        check(run_time(model, 1) - before < TICKS(20000) / 2);
        model_free(model);
    }
}

/* Each child lives for less than a tick, and forks the next before it ends. */
static void a_chain_of_children_sinks(void)
{
    struct model *model = machine_with("mlfq", 1, 1);
    struct model_task *last = model->tasks[0];
    for (int i = 0; i < 100; i++) {
        model_advance(model, MODEL_TICK_NS / 10 * 9);
        struct model_task *next = model_fork(model, last);
        model_end(model, last);
        check(model->cpus[0].current == next);
        last = next;
        if (i % 10 == 9) { /* an occasional tick, at its time */
            model_advance(model, MODEL_TICK_NS - model->now % MODEL_TICK_NS);
            model_tick_cpu(model, 0);
        }
    }
    check(last->task.level == 0);
    model_free(model);
}

/* At each tick, a new task arrives and runs for a tick. Returns task 1's run time. */
static uint64_t run_under_barrage(const char *policy, uint32_t ticks)
{
    struct model *model = machine_with(policy, 1, 1);
    model_ticks(model, 480);
    uint64_t before = run_time(model, 1);
    for (uint32_t tick = 0; tick < ticks; tick++) {
        model_fork(model, NULL);
        model_tick(model);
        struct model_task *current = model->cpus[0].current;
        struct model_task *newest = NULL;
        for (uint32_t i = 1; i < model->task_count; i++) {
            if (model->tasks[i]->place != MODEL_ENDED &&
                model->tasks[i]->task.run_time >= MODEL_TICK_NS)
                newest = model->tasks[i];
        }
        if (newest)
            model_end(model, newest);
        check(current != NULL);
    }
    uint64_t ran = run_time(model, 1) - before;
    model_free(model);
    return ran;
}

static void the_bottom_starves_without_boost_only(void)
{
    check(run_under_barrage("mlfq:four-quanta", 480) <= TICKS(1));
    check(run_under_barrage("mlfq:whole-quanta", 480) <= TICKS(1));
    check(run_under_barrage("mlfq", 480) >= TICKS(8));
    check(run_under_barrage("mlfq:allotment-boost", 480) >= TICKS(8));
}

/* Each task of a gang runs for a tick and sleeps for 32; together they exceed the CPU. */
static void a_gang_on_credit_starves_nobody(void)
{
    struct model *model = machine_with("mlfq", 1, 41);
    uint64_t before = 0;
    uint32_t on_credit = 0;
    for (uint32_t tick = 1; tick <= 11 * 480; tick++) {
        model_tick(model);
        while (model->cpus[0].current && model_running(model, 0) > 1 &&
               model->cpus[0].current->task.picked_since < model->now)
            model_sleep(model, 0, 32);
        on_credit += model->cpus[0].current && model->cpus[0].current->task.level == 4;
        if (tick % 480 == 0) {
            check(tick == 480 || run_time(model, 1) - before >= TICKS(8));
            check(on_credit > 200 && on_credit < 280);
            before = run_time(model, 1);
            on_credit = 0;
        }
    }
    model_free(model);
}

/*
 * Task 1 was CPU-bound like its two companions, and becomes interactive. Returns its longest wait
 * after a wake-up, starting with the third.
 */
static uint64_t wait_of_late_interactive(const char *policy, bool boost)
{
    uint64_t longest = 0;
    struct model *model = model_new(policy, 1, 1);
    if (!boost)
        set_tunable(model, "boost", 0);
    fork_many(model, 3);
    model_ticks(model, 200);
    struct model_task *task = model->tasks[0];
    for (int wakeup = 0; wakeup < 60; wakeup++) {
        for (int i = 0; i < 1000 && model_running(model, 0) != 1; i++)
            model_tick(model);
        if (model_running(model, 0) != 1)
            longest = UINT64_MAX;
        if (longest == UINT64_MAX)
            break;
        uint64_t waited = task->task.picked_since - task->task.queued_since;
        if (wakeup >= 3 && waited > longest)
            longest = waited;
        model_advance(model, MODEL_TICK_NS / 4);
        sleep_until(model, 0, model->now - MODEL_TICK_NS / 4 + TICKS(20));
        model_advance(model, MODEL_TICK_NS / 4 * 3);
        model_tick_cpu(model, 0);
    }
    model_free(model);
    return longest;
}

static void who_turns_interactive_late_rises(void)
{
    check(wait_of_late_interactive("mlfq:whole-quanta", true) == UINT64_MAX); /* never runs again */
    check(wait_of_late_interactive("mlfq:four-quanta", true) > 0); /* stays at the lowest level */
    check(wait_of_late_interactive("mlfq", false) == 0);
    check(wait_of_late_interactive("mlfq", true) == 0);
}

/* ---- several CPUs, random programs ---- */

#define TASKS_MAX 48

/* The recorded state of each task of a random program. */
struct watched {
    bool waited;         /* before the tick */
    uint64_t selections; /* at that time */
    uint64_t slept;
    uint64_t above_base; /* run time above its base */
    uint64_t above_zero; /* run time above level 0 */
};

static void random_act(struct model *model, uint32_t cpu)
{
    struct model_task *task = model->cpus[cpu].current;
    uint64_t act = random_below(20);
    if (act < 2 && model->task_count < TASKS_MAX)
        model_fork(model, task);
    else if (act < 5)
        model_sleep(model, cpu, 1 + random_below(80));
    else if (act < 6)
        model_yield(model, cpu);
}

/* Counts time before the policy is notified of it. */
static void pass_time(struct model *model, struct watched *watched, uint64_t ns)
{
    model_advance(model, ns);
    for (uint32_t i = 0; i < model->task_count; i++) {
        const struct model_task *task = model->tasks[i];
        const feedback_task_t *state = feedback_task_of(&task->task);
        watched[i].above_base +=
            task->place == MODEL_RUNNING && state->level > state->base ? ns : 0;
        watched[i].above_zero += task->place == MODEL_RUNNING && state->level > 0 ? ns : 0;
        watched[i].slept += task->place == MODEL_BLOCKED ? ns : 0;
    }
}

static uint64_t true_level(const struct model *model, const struct model_task *task)
{
    uint64_t length = feedback_ticks(&model->scheduler, FEEDBACK_BOOST);
    struct feedback_queue state = {.epoch = length > 0 ? model->now / length : 0};
    struct run_queue queue = {
        .scheduler = (struct scheduler *)&model->scheduler, .now = model->now, .state = &state};
    return feedback_level(&queue, &task->task);
}

/*
 * Returns the lowest level that runs; too high for any level if a CPU is idle that no task could
 * use.
 */
static uint64_t lowest_running(const struct model *model)
{
    uint64_t lowest = UINT64_MAX;
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        const struct model_task *task = model->cpus[cpu].current;
        uint64_t runs = task ? true_level(model, task) : 0;
        lowest = runs < lowest ? runs : lowest;
    }
    return lowest;
}

/*
 * After the ticks of all CPUs: no task that already waited waits while a lower level runs anywhere.
 */
static void check_order(const struct model *model, const struct watched *watched)
{
    uint64_t lowest = lowest_running(model);
    for (uint32_t i = 0; i < model->task_count; i++) {
        const struct model_task *task = model->tasks[i];
        if (task->place == MODEL_QUEUED && watched[i].waited &&
            watched[i].selections == task->task.selections)
            check(true_level(model, task) <= lowest);
    }
}

/* The invariants stated in policies/mlfq.c. */
static void check_credit(const struct model *model, const struct watched *watched)
{
    uint64_t epochs = 1 + model->now / TICKS(480);
    for (uint32_t i = 0; i < model->task_count; i++) {
        check(watched[i].above_base <= watched[i].slept / 16);
        /* Each allotment may be exceeded by half a tick, because ticks end slices. */
        check(watched[i].above_zero <=
              watched[i].slept / 16 + epochs * (TICKS(56) + 3 * MODEL_TICK_NS / 2));
    }
}

static void run_program(const char *policy, uint32_t cpus, uint64_t seed, uint32_t ticks)
{
    struct watched watched[TASKS_MAX] = {0};
    random_state = seed * 0x9e3779b97f4a7c15ull | 1;
    struct model *model = machine_with(policy, cpus, cpus + 4);
    bool has_credit = model->policy == &policy_mlfq;
    for (uint32_t tick = 0; tick < ticks; tick++) {
        uint64_t rest = MODEL_TICK_NS;
        for (int i = 0; i < 3; i++) {
            uint64_t step = random_below(rest);
            uint32_t cpu = (uint32_t)random_below(cpus);
            pass_time(model, watched, step);
            rest -= step;
            if (model->cpus[cpu].current)
                random_act(model, cpu);
        }
        pass_time(model, watched, rest);
        for (uint32_t i = 0; i < model->task_count; i++) {
            watched[i].waited = model->tasks[i]->place == MODEL_QUEUED;
            watched[i].selections = model->tasks[i]->task.selections;
        }
        for (uint32_t cpu = 0; cpu < cpus; cpu++)
            model_tick_cpu(model, cpu);
        check_order(model, watched);
        if (has_credit)
            check_credit(model, watched);
    }
    model_free(model);
}

static void no_level_runs_while_a_higher_one_waits_elsewhere(void)
{
    static const char *const choices[] = {"mlfq", "mlfq:four-quanta", "mlfq:whole-quanta",
                                          "mlfq:allotment-boost"};
    static const uint32_t cpu_counts[] = {1, 2, 3, 4, 8, 16};
    for (size_t choice = 0; choice < 4; choice++) {
        for (size_t i = 0; i < sizeof(cpu_counts) / sizeof(cpu_counts[0]); i++) {
            for (uint64_t seed = 1; seed <= 8; seed++)
                run_program(choices[choice], cpu_counts[i], seed, choice == 0 ? 1500 : 500);
        }
    }
}

/* ---- switches, boosts and placement, one by one ---- */

static void who_is_adopted_pays_for_nothing_before(void)
{
    struct model *model = machine_with("mlfq", 1, 2);
    model_ticks(model, 300);
    model_switch(model, "mlfq");
    check_timeline(model, 4, model_running(model, 0) == 1 ? "1@3x2 2@3x2" : "2@3x2 1@3x2");
    model_free(model);
}

/* The CPU's tick is late; at that time, its task is at the top. */
static void who_is_about_to_be_boosted_keeps_its_cpu(void)
{
    struct model *model = machine_with("mlfq", 1, 1);
    model_ticks(model, 479);
    model_clear_log(model);
    model_advance(model, MODEL_TICK_NS);
    model_fork(model, NULL);
    check_picks(model, "");
    model_tick_cpu(model, 0);
    check_picks(model, "2");
    model_free(model);
}

static void an_idle_cpu_leaves_alone_what_another_is_about_to_run(void)
{
    struct model *model = machine_with("mlfq", 2, 2);
    model_block(model, 0);
    model_block(model, 1);
    model_wake_unsettled(model, model->tasks[2 - 1]);
    check(model->queues[1].queued == 1);
    check(policy_mlfq.balance(&model->scheduler, 0, true) == NO_CPU);
    model_settle(model);
    check(model_running(model, 1) == 2);
    model_free(model);
}

/* CPU 0 learns of the boost first, and must not use the others' old levels. */
static void a_boost_moves_nobody(void)
{
    struct model *model = machine_with("mlfq", 2, 4);
    model_ticks(model, 479);
    uint32_t cpu[4];
    for (uint32_t i = 0; i < 4; i++)
        cpu[i] = model->tasks[i]->task.cpu;
    model_ticks(model, 3);
    for (uint32_t i = 0; i < 4; i++)
        check(model->tasks[i]->task.cpu == cpu[i]);
    model_free(model);
}

static void tasks_go_to_the_cpu_that_serves_the_lowest_level(void)
{
    struct model *model = machine_with("mlfq", 2, 1);
    model_ticks(model, 60); /* 1 is at 0, on CPU 0 */
    model_clear_log(model);
    model_fork(model, NULL);
    check_picks(model, "1:2"); /* idle */
    model_end(model, model->tasks[2 - 1]);
    model_fork(model, NULL);
    check_picks(model, "1:3"); /* idle again */
    model_fork(model, NULL);
    check_picks(model, "0:4"); /* preempts 1 */
    model_end(model, model->tasks[3 - 1]);
    check_picks(model, "1:1");
    model_fork(model, NULL); /* forked by a task on CPU 0 */
    check_picks(model, "1:5");
    model_free(model);
}

int main(void)
{
    run_test(a_slice_lasts_the_whole_quantum);
    run_test(a_slice_is_a_tick_and_a_quantum_demotes);
    run_test(a_starved_task_rises_to_the_top);
    run_test(a_task_is_served_at_the_level_of_its_waiter);
    run_test(who_gives_up_its_quantum_has_a_new_one);
    run_test(an_interrupted_quantum_goes_on);
    run_test(nobody_is_ever_boosted);
    run_test(figure_7_comes_out_tick_by_tick);
    run_test(figure_8_comes_out_tick_by_tick);
    run_test(allotments_are_counted_over_all_stays);
    run_test(who_leaves_before_the_tick_does_not_pay);
    run_test(a_slice_goes_on_after_sleep);
    run_test(a_higher_level_waits_for_the_tick_and_no_longer);
    run_test(with_preempt_0_it_waits_for_the_end_of_the_turn);
    run_test(who_sinks_within_a_slice_has_had_its_turn);
    run_test(the_boost_is_for_blocked_ones_too);
    run_test(the_boost_keeps_the_order);
    run_test(slices_and_allotments_are_those_of_the_level);
    run_test(levels_are_1_to_8);
    run_test(a_limit_of_0_is_none);
    run_test(a_higher_level_takes_over_at_once);
    run_test(an_equal_does_not_take_over);
    run_test(a_task_picked_within_a_tick_pays_for_what_it_ran);
    run_test(a_child_starts_where_its_parent_is);
    run_test(release_2_raises_whoever_blocks);
    run_test(who_sinks_when_it_blocks_has_a_new_slice);
    run_test(who_wakes_with_a_full_purse_is_served_above_all);
    run_test(credit_is_limited_by_the_purse);
    run_test(the_boost_takes_nobody_from_the_credit_level);
    run_test(a_boost_while_one_waits_at_the_credit_level);
    run_test(who_spends_its_credit_falls_to_its_base);
    run_test(who_uses_little_never_sinks);
    run_test(four_quanta_can_be_gamed);
    run_test(the_default_cannot_be_gamed);
    run_test(sleeping_for_credit_gains_nothing);
    run_test(a_chain_of_children_sinks);
    run_test(the_bottom_starves_without_boost_only);
    run_test(a_gang_on_credit_starves_nobody);
    run_test(who_turns_interactive_late_rises);
    run_test(no_level_runs_while_a_higher_one_waits_elsewhere);
    run_test(who_is_adopted_pays_for_nothing_before);
    run_test(who_is_about_to_be_boosted_keeps_its_cpu);
    run_test(an_idle_cpu_leaves_alone_what_another_is_about_to_run);
    run_test(a_boost_moves_nobody);
    run_test(tasks_go_to_the_cpu_that_serves_the_lowest_level);
    return 0;
}
