/* SPDX-License-Identifier: MIT */

/* The lottery: its draws, its tree, its tunables and presets, on one CPU and several. */

#include "policy_harness.h"

#include "../../policies/lottery.c"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_lottery};
const uint32_t policies_count = 1;

/* ---- the tree ---- */

struct subtree {
    uint64_t count;
    uint64_t tickets;
};

static struct subtree check_subtree(struct task *task, struct task *parent)
{
    if (!task)
        return (struct subtree){0};
    const struct ticket_node *node = TICKET_NODE(task);
    check(node->parent == parent && node->tickets > 0);
    struct subtree left = check_subtree(node->child[0], task);
    struct subtree right = check_subtree(node->child[1], task);
    check(node->sum == node->tickets + left.tickets + right.tickets);
    check(left.count >= right.count && left.count <= 2 * right.count + 1);
    return (struct subtree){1 + left.count + right.count, node->sum};
}

/* Each sum is that of its subtree; weight and lead are those of all who are queued or run. */
static void check_queue(const struct model *model, uint32_t queue)
{
    const struct lottery_queue *state = model->queues[queue].state;
    uint64_t members = 0;
    uint64_t weight = 0;
    int64_t lead = 0;
    uint64_t queued = 0;
    for (uint32_t i = 0; i < model->task_count; i++) {
        const struct model_task *task = model->tasks[i];
        bool waits = task->place == MODEL_QUEUED && task->queue == queue;
        bool runs = task->place == MODEL_RUNNING &&
                    (model->scheduler.queues == 1 || task->task.cpu == queue);
        queued += waits ? TICKET_NODE(&task->task)->tickets : 0;
        if (waits || runs) {
            const struct share_member *member = &STATE_OF(&task->task, struct lottery_task)->member;
            members++;
            weight += member->weight;
            lead += shares_lead(&model->queues[queue], member);
        }
    }
    struct subtree all = check_subtree(state->tree.root, NULL);
    check(all.count == state->tree.count && all.count == model->queues[queue].queued);
    check(all.tickets == queued && ticket_tree_total(&state->tree) == queued);
    check(state->shares.members == members && state->shares.weight == weight);
    check(state->shares.lead == lead);
}

static void check_queues(const struct model *model)
{
    for (uint32_t i = 0; i < model->scheduler.queues; i++)
        check_queue(model, i);
}

static uint64_t test_random_state;

static uint64_t test_random(uint64_t limit)
{
    test_random_state = test_random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (test_random_state >> 33) % limit;
}

static void any_step(struct model *model)
{
    uint32_t cpu = (uint32_t)test_random(model->scheduler.cpus);
    struct model_task *task = model->tasks[test_random(model->task_count)];
    switch (test_random(8)) {
    case 0:
        model_fork(model, NULL);
        break;
    case 1:
        if (model->cpus[cpu].current)
            model_sleep(model, cpu, 1 + test_random(9));
        break;
    case 2:
        if (model->cpus[cpu].current)
            model_yield(model, cpu);
        break;
    case 3:
        if (task->place != MODEL_ENDED)
            model_set_attribute(model, task, MODEL_TICKETS, 1 + (uint32_t)test_random(TICKETS_MAX));
        break;
    case 4:
        if (task->place != MODEL_ENDED)
            model_end(model, task);
        break;
    default:
        model_tick(model);
    }
}

static void ticket_sums_are_conserved(void)
{
    static const char *const choices[] = {"lottery", "lottery:thesis", "lottery:equal-lfsr",
                                          "lottery:linux"};
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t cpus = 1; cpus <= 4; cpus++) {
            struct model *model = model_new(choices[i], cpus, cpus);
            test_random_state = cpus;
            model_fork(model, NULL);
            for (int step = 0; step < 800; step++) {
                any_step(model);
                check_queues(model);
            }
            model_free(model);
        }
    }
}

/* ---- draws ---- */

/* A machine with one CPU and tasks of 1, 2, 3 … tickets. */
static struct model *machine_with(const char *policy, uint32_t count, uint64_t seed)
{
    struct model *model = model_new(policy, 1, seed);
    for (uint32_t i = 0; i < count; i++)
        model_set_attribute(model, model_fork(model, NULL), MODEL_TICKETS, i + 1);
    for (uint32_t i = 0; i < count; i++)
        model->tasks[i]->task.selections = 0;
    return model;
}

static void draws_are_fair_while_tasks_come_and_go(void)
{
    struct model *model = machine_with("lottery", 0, 1);
    for (int i = 0; i < 20; i++)
        model_fork(model, NULL);
    for (uint32_t i = 0; i < 6000; i++) {
        model_tick(model);
        if (i % 3 == 0)
            model_sleep(model, 0, 1 + i % 7);
    }
    for (uint32_t i = 0; i < 20; i++) {
        uint64_t selections = model->tasks[i]->task.selections;
        check(selections > 250 && selections < 650);
    }
    model_free(model);
}

static void who_holds_all_tickets_nearly_always_wins(void)
{
    struct model *model = machine_with("lottery", 2, 1);
    model_set_attribute(model, model->tasks[1], MODEL_TICKETS, TICKETS_MAX);
    model_ticks(model, 1000);
    check(model->tasks[1]->task.selections > 990);
    model_free(model);
}

static void the_ticket_is_remarked(void)
{
    struct model *model = machine_with("lottery:thesis", 4, 1);
    for (int i = 0; i < 100; i++) {
        model_tick(model);
        check(model->queues[0].remark < 10);
    }
    model_free(model);
}

/* ---- what is set ---- */

static struct model *machine_set(const char *tunable, uint32_t value, uint32_t cpus)
{
    static struct preset_value values[POLICY_TUNABLES_MAX];
    static struct preset preset = {"test", "", {{NULL, 0}}};
    values[0] = (struct preset_value){tunable, value};
    memcpy(preset.values, values, sizeof(values));
    struct policy_choice choice = {&policy_lottery, &preset};
    struct model *model = model_new("lottery", cpus, 1);
    model_install(model, &choice);
    return model;
}

static void a_slice_lasts_as_many_ticks(void)
{
    struct model *model = machine_set("slice", 3, 1);
    model_fork(model, NULL);
    model_fork(model, NULL);
    model_ticks(model, 300);
    check(model->tasks[0]->task.selections + model->tasks[1]->task.selections == 101);
    model_free(model);
}

static void nobody_waits_longer_than_the_limit(void)
{
    struct model *model = machine_set("wait_limit", 50, 1);
    for (int i = 0; i < 10; i++)
        model_fork(model, NULL);
    model_set_attribute(model, model->tasks[0], MODEL_TICKETS, TICKETS_MAX);
    for (int i = 0; i < 1000; i++) {
        model_tick(model);
        for (uint32_t task = 0; task < 10; task++) {
            const struct model_task *waiting = model->tasks[task];
            /* Nine may be due at once, and each has a turn of one tick. */
            check(waiting->place == MODEL_RUNNING ||
                  model->now - waiting->task.queued_since < (50 + 9) * MODEL_TICK_NS);
        }
    }
    check(model->tasks[0]->task.selections > 500);
    model_free(model);
}

static void newcomers_have_a_turn_in_time(void)
{
    struct model *model = machine_set("newcomer_limit", 10, 1);
    model_set_attribute(model, model_fork(model, NULL), MODEL_TICKETS, TICKETS_MAX);
    model_tick(model);
    for (int round = 0; round < 20; round++) {
        uint32_t first = model->task_count;
        for (int i = 0; i < 10; i++)
            model_fork(model, NULL);
        for (uint32_t i = first; i < first + 10; i++)
            check(model->tasks[i]->task.selections == 0);
        model_ticks(model, 10);
        for (uint32_t i = first; i < first + 10; i++)
            check(model->tasks[i]->task.selections >= 1);
    }
    /* Of one it is enough that it is picked at the tenth tick. */
    uint32_t last = model->task_count;
    uint32_t at_once = 0;
    for (int round = 0; round < 20; round++) {
        struct model_task *task = model_fork(model, NULL);
        model_tick(model);
        at_once += task->task.selections > 0;
        model_ticks(model, 9);
        check(task->task.selections >= 1);
    }
    check(at_once < 5 && model->task_count == last + 20);
    model_free(model);
}

static void recent_selections_decay(void)
{
    struct model *model = model_new("lottery:thesis", 1, 1);
    model_fork(model, NULL);
    check(model->tasks[0]->task.level == 1);
    model_ticks(model, 98);
    check(model->tasks[0]->task.level == 99);
    model_ticks(model, 1);
    check(model->tasks[0]->task.level == 100);
    model_ticks(model, 1); /* 100 × 3/4 + 1 */
    check(model->tasks[0]->task.level == 76);
    model_ticks(model, 20050); /* x = (x + 100) × 3/4: 300 after a decay in the long run */
    check(model->tasks[0]->task.level > 340 && model->tasks[0]->task.level < 360);
    model_free(model);
}

static uint64_t selections_in(struct model *model, uint32_t task, uint32_t ticks)
{
    uint64_t before = model->tasks[task]->task.selections;
    model_ticks(model, ticks);
    return model->tasks[task]->task.selections - before;
}

static void a_penalty_makes_shares_more_alike(void)
{
    struct model *model = machine_set("recent_penalty", 100, 1);
    struct preset preset = {
        "test", "", {{"recent_penalty", 100}, {"decay_interval", 10}, {NULL, 0}}};
    model_install(model, &(struct policy_choice){&policy_lottery, &preset});
    model_fork(model, NULL);
    model_set_attribute(model, model_fork(model, NULL), MODEL_TICKETS, 9);
    uint64_t nine = selections_in(model, 1, 4000);
    check(nine > 2000 && nine < 3200); /* of 4,000, not 3,600 */
    model_free(model);
}

static void the_presets_take_tickets_from_where_they_say(void)
{
    static const struct {
        const char *choice;
        uint64_t least, most; /* selections of 1,000 */
        enum share_attribute attribute;
    } cases[] = {
        {"lottery", 660, 840, SHARES_BY_TICKETS},
        {"lottery:thesis", 660, 840, SHARES_BY_TICKETS},
        {"lottery:linux", 70, 210, SHARES_BY_WEIGHT}, /* 1 : 6 */
        {"lottery:equal-lfsr", 420, 580, SHARES_EQUAL},
    };
    for (uint32_t i = 0; i < 4; i++) {
        struct model *model = model_new(cases[i].choice, 1, 1);
        model_set_attribute(model, model_fork(model, NULL), MODEL_WEIGHT, 6);
        model_set_attribute(model, model_fork(model, NULL), MODEL_WEIGHT, 1);
        model_set_attribute(model, model->tasks[1], MODEL_TICKETS, 3);
        uint64_t selections = selections_in(model, 1, 1000);
        check(selections > cases[i].least && selections < cases[i].most);
        check(policy_shares_by(&policy_lottery, &model->scheduler) == cases[i].attribute);
        model_free(model);
    }
}

/* ---- tasks that block ---- */

/* The part of a CPU that a task with one ticket gets beside one that always runs, if it blocks
 * for `away` ticks whenever it has run for one. */
static double share_of_a_sleeper(struct model *model, uint32_t away)
{
    model_fork(model, NULL);
    model_fork(model, NULL);
    struct model_task *sleeper = model->tasks[1];
    for (int i = 0; i < 20000; i++) {
        model_tick(model);
        if (model->cpus[0].current == sleeper && sleeper->task.picked_since < model->now)
            model_sleep(model, 0, away);
        else if (sleeper->place == MODEL_QUEUED && sleeper->task.run_time > 0 &&
                 sleeper->task.queued_since == model->now &&
                 sleeper->task.picked_since + MODEL_TICK_NS == model->now)
            continue;
    }
    double share = (double)sleeper->task.run_time / (double)model->now;
    model_free(model);
    return share;
}

int main(void)
{
    (void)share_of_a_sleeper;
    run_test(ticket_sums_are_conserved);
    run_test(draws_are_fair_while_tasks_come_and_go);
    run_test(who_holds_all_tickets_nearly_always_wins);
    run_test(the_ticket_is_remarked);
    run_test(a_slice_lasts_as_many_ticks);
    run_test(nobody_waits_longer_than_the_limit);
    run_test(newcomers_have_a_turn_in_time);
    run_test(recent_selections_decay);
    run_test(a_penalty_makes_shares_more_alike);
    run_test(the_presets_take_tickets_from_where_they_say);
    return 0;
}
