/* SPDX-License-Identifier: MIT */

/* Tests the lottery: draws, tree, tunables and presets, on one CPU and several. */

#include <math.h>

#include "policy_harness.h"

#include "../../policies/lottery.c"
#include "../../policies/studies/study-lottery.c"
#include "../../policies/support/groups.h"
#include "../../policies/support/registry.c"

const struct policy *const policies[] = {&policy_lottery, &policy_study_lottery};
const uint32_t policies_count = 1;
const uint32_t policy_sources_count = 2;

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

/* Each sum equals its subtree; weight and lead cover all queued and running tasks. */
static void check_queue(const struct model *model, uint32_t queue)
{
    const struct drawing_queue *state = model->queues[queue].state;
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
            const struct share_member *member = &STATE_OF(&task->task, struct drawing_task)->member;
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

/* Adds tasks of 1, 2, 3 … tickets. */
static struct model *with_tickets(struct model *model, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        model_set_attribute(model, model_fork(model, NULL), MODEL_TICKETS, i + 1);
    for (uint32_t i = 0; i < count; i++)
        model->tasks[i]->task.selections = 0;
    return model;
}

/* Makes such a machine with one CPU. */
static struct model *machine_with(const char *policy, uint32_t count, uint64_t seed)
{
    return with_tickets(model_new(policy, 1, seed), count);
}

#define PLAYERS_MAX 12

/*
 * Distance of the winners of many slices from independent draws: chi-square of the winners, and of
 * the pairs of successive winners.
 */
struct chi_square {
    double winners; /* count − 1 degrees of freedom */
    double pairs;   /* count² − 1 */
};

static double square_over(double difference, double expected)
{
    return difference * difference / expected;
}

static struct chi_square chi_square_of(struct model *model, uint32_t turns)
{
    const uint32_t count = model->task_count;
    double won[PLAYERS_MAX] = {0};
    double pairs[PLAYERS_MAX][PLAYERS_MAX] = {{0}};
    double tickets = 0;
    struct chi_square result = {0, 0};
    for (uint32_t i = 0; i < count; i++)
        tickets += (double)TICKET_NODE(&model->tasks[i]->task)->tickets;
    for (uint32_t i = 0, last = 0; i <= turns; i++) {
        model_tick(model);
        uint32_t winner = (uint32_t)model_running(model, 0) - 1;
        won[winner] += i > 0;
        pairs[last][winner] += i > 0;
        last = winner;
    }
    for (uint32_t i = 0; i < count; i++) {
        double part = (double)TICKET_NODE(&model->tasks[i]->task)->tickets / tickets;
        result.winners += square_over(won[i] - turns * part, turns * part);
        for (uint32_t j = 0; j < count; j++) {
            double both =
                turns * part * (double)TICKET_NODE(&model->tasks[j]->task)->tickets / tickets;
            result.pairs += square_over(pairs[i][j] - both, both);
        }
    }
    model_free(model);
    return result;
}

/*
 * Returns the squared distance of a sum from its mean, in standard deviations; negative if the sum
 * is smaller.
 */
static double distance(double sum, double degrees_of_freedom)
{
    double difference = sum - degrees_of_freedom;
    return difference * fabs(difference) / (2 * degrees_of_freedom);
}

/* Returns sums over many seeds, as distances from independent draws. */
static struct chi_square distance_of(const char *policy, uint32_t count, uint32_t turns,
                                     uint64_t seeds)
{
    struct chi_square sum = {0, 0};
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct chi_square one = chi_square_of(machine_with(policy, count, seed), turns);
        sum.winners += one.winners;
        sum.pairs += one.pairs;
    }
    return (struct chi_square){distance(sum.winners, (double)(seeds * (count - 1))),
                               distance(sum.pairs, (double)(seeds * (count * count - 1)))};
}

static bool within(double distance, double deviations)
{
    return fabs(distance) < deviations * deviations;
}

static void draws_are_independent(void)
{
    static const uint32_t counts[] = {2, 4, 11};
    for (int i = 0; i < 3; i++) {
        struct chi_square distance = distance_of("lottery", counts[i], 2000, 50);
        check(within(distance.winners, 4) && within(distance.pairs, 4));
        distance = distance_of("lottery:thesis", counts[i], 2000, 50);
        check(within(distance.winners, 4) && within(distance.pairs, 4));
    }
}

/* Defects of the studies' generators. */

static void an_lfsr_is_fair_in_the_mean_but_its_draws_depend_on_each_other(void)
{
    struct chi_square distance = distance_of("lottery:equal-lfsr", 5, 2000, 50);
    check(within(distance.winners, 4));
    check(distance.pairs > 1000.0 * 1000.0); /* few different winners follow each winner */
    /*
     * In a period, each number occurs once, so shares are more even than random draws in the long
     * run: 1 in 800 independent draws is this close.
     */
    struct model *model = machine_with("lottery:equal-lfsr", 5, 1);
    check(chi_square_of(model, 65535).winners < 0.1);
}

/*
 * The first numbers of study 1's program, with an initial state of 1, computed separately by its
 * rule.
 */
static void the_xorshift_is_that_of_the_program(void)
{
    static const uint64_t numbers[] = {270369, 67634689, 499951813, 307599695};
    uint64_t state = 1;
    for (uint32_t i = 0; i < 4; i++)
        check(random_xorshift31(&state) == numbers[i]);
    state = 0; /* any seed is valid */
    check(random_xorshift31(&state) == numbers[0]);
    state = 1; /* numbers from 3 × 2^29 are drawn again */
    uint32_t below = 0;
    for (uint32_t i = 0; i < 30000; i++)
        below += random_xorshift31_below(&state, 3ull << 29) < 1ull << 29;
    check(below > 9700 && below < 10300);
}

/* If there are more tickets than generator values, both halves are still drawn equally often. */
static void narrow_generators_reach_all_tickets(void)
{
    uint64_t state = 1;
    uint32_t upper = 0;
    for (uint32_t i = 0; i < 30000; i++)
        upper += random_xorshift31_below(&state, 1ull << 40) >= 1ull << 39;
    check(upper > 14700 && upper < 15300);
    upper = 0;
    state = 1;
    for (uint32_t i = 0; i < 65535; i++)
        upper += random_lfsr16_below(&state, 1ull << 40) >= 1ull << 39;
    check(upper == 32767);
    state = 1;
    for (uint32_t i = 0; i < 65535; i++)
        check(random_lfsr16_below(&state, 65536) < 65536);
}

/* The generators that study 1's text names: the published numbers of RFC 8682, and the rule. */
static void the_generators_of_the_text_are_exact(void)
{
    static const uint32_t twisted[] = {2545341989, 981918433, 3715302833, 2387538352, 3591001365};
    static const uint32_t congruent[] = {1015568748, 1586005467, 2165703038, 3027450565};
    struct twister twister;
    uint64_t state = 1;
    random_twister_start(&twister, 1);
    for (uint32_t i = 0; i < 5; i++)
        check(random_twister(&twister) == twisted[i]);
    for (uint32_t i = 0; i < 4; i++)
        check(random_lcg32(&state) == congruent[i]);
    state = 1;
    uint32_t upper = 0;
    for (uint32_t i = 0; i < 30000; i++)
        upper += random_lcg32_below(&state, 1ull << 40) >= 1ull << 39;
    check(upper > 14700 && upper < 15300);
}

/* With four tickets in a fixed order, the congruential generator repeats after four draws. */
static void a_twister_draws_independently_and_a_congruential_generator_does_not(void)
{
    static const uint32_t generators[] = {GENERATOR_LCG32, GENERATOR_TWISTER};
    for (int i = 0; i < 2; i++) {
        struct chi_square sum = {0, 0};
        for (uint32_t seed = 1; seed <= 50; seed++) {
            struct model *model = model_new("lottery:equal-lfsr", 1, seed);
            model->scheduler.tunable[STUDY_GENERATOR] = generators[i];
            model->scheduler.tunable[STUDY_FIXED_TICKETS] = 1;
            struct chi_square one = chi_square_of(with_tickets(model, 4), 2000);
            sum.winners += one.winners;
            sum.pairs += one.pairs;
        }
        check(within(distance(sum.winners, 50.0 * 3), 4) == (generators[i] == GENERATOR_TWISTER));
        check(within(distance(sum.pairs, 50.0 * 15), 4) == (generators[i] == GENERATOR_TWISTER));
    }
}

/* Three tasks with 40,000 tickets each have a third each: every ticket can win. */
static void the_thesis_reaches_every_ticket(void)
{
    struct model *model = model_new("lottery:thesis", 1, 1);
    for (int i = 0; i < 3; i++)
        model_set_attribute(model, model_fork(model, NULL), MODEL_TICKETS, 40000);
    model_ticks(model, 3000);
    for (uint32_t i = 0; i < 3; i++)
        check(model->tasks[i]->task.selections > 900 && model->tasks[i]->task.selections < 1100);
    model_free(model);
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

/* ---- settings ---- */

static struct model *machine_set(const char *tunable, uint32_t value, uint32_t cpus)
{
    static struct preset_value values[POLICY_TUNABLES_MAX];
    static struct preset preset = {"test", "", {{NULL, 0}}};
    values[0] = (struct preset_value){tunable, value};
    memcpy(preset.values, values, sizeof(values));
    bool is_study = tunable_find(&policy_lottery, tunable, strlen(tunable)) == NO_TUNABLE;
    struct policy_choice choice = {is_study ? &policy_study_lottery : &policy_lottery, &preset};
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
            /* Nine may be due at once, and each runs for one tick. */
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
    /* A single newcomer only has to be picked by the tenth tick. */
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
    model_install(model, &(struct policy_choice){&policy_study_lottery, &preset});
    model_fork(model, NULL);
    model_set_attribute(model, model_fork(model, NULL), MODEL_TICKETS, 9);
    uint64_t nine = selections_in(model, 1, 4000);
    check(nine > 2000 && nine < 3200); /* of 4,000, instead of 3,600 */
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
        check(policy_shares_by(model->policy, &model->scheduler) == cases[i].attribute);
        model_free(model);
    }
}

/* ---- tasks that block ---- */

static void half_tick(struct model *model)
{
    model_advance(model, MODEL_TICK_NS / 2);
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        if (model->cpus[cpu].current)
            model_account(model, model->cpus[cpu].current);
    }
}

/*
 * Returns the share of a task with one ticket against a task with three. It sleeps for two ticks
 * after every one and a half ticks of run time.
 */
static double share_of_a_sleeper(struct model *model)
{
    struct model_task *sleeper = model_fork(model, NULL);
    model_set_attribute(model, model_fork(model, NULL), MODEL_TICKETS, 3);
    uint64_t woken = 0;
    for (int i = 0; i < 40000; i++) {
        half_tick(model);
        if (sleeper->place == MODEL_RUNNING &&
            sleeper->task.run_time - woken >= 3 * MODEL_TICK_NS / 2) {
            woken = sleeper->task.run_time;
            model_sleep(model, 0, 2);
        }
        if (i % 2 == 1)
            model_tick_cpu(model, 0);
    }
    double share = (double)sleeper->task.run_time / (double)model->now;
    model_free(model);
    return share;
}

static void a_sleeper_gets_what_it_is_due(void)
{
    double with = share_of_a_sleeper(model_new("lottery", 1, 1));
    double without = share_of_a_sleeper(machine_set("compensation", 1, 1));
    check(fabs(with - 0.25) < 0.01);
    check(without < 0.18);
}

static void who_slept_for_long_runs_soon_but_not_for_long(void)
{
    struct model *model = model_new("lottery", 1, 1);
    for (int i = 0; i < 10; i++)
        model_fork(model, NULL);
    uint64_t delay = 0;
    for (int round = 0; round < 20; round++) {
        while (model_running(model, 0) != 1)
            model_tick(model);
        model_sleep(model, 0, 500);
        model_ticks(model, 499);
        uint64_t before = model->tasks[0]->task.run_time;
        model_tick(model);
        for (; model_running(model, 0) != 1; delay++)
            model_tick(model);
        model_ticks(model, 64);
        check(model->tasks[0]->task.run_time - before < 32 * MODEL_TICK_NS);
    }
    check(delay < 20); /* 9 per round without compensation */
    model_free(model);
}

static void adaptation_favours_who_blocks(void)
{
    double without = share_of_a_sleeper(machine_set("compensation", 1, 1));
    struct model *model = machine_set("adaptation", 50, 1);
    model->scheduler.tunable[DRAWING_COMPENSATION] = 1;
    check(share_of_a_sleeper(model) > 1.05 * without);
}

/* ---- several CPUs ---- */

static struct model *machine_of(uint32_t cpus, const uint32_t *tickets, uint32_t count)
{
    struct model *model = model_new("lottery", cpus, 1);
    for (uint32_t i = 0; i < count; i++)
        model_set_attribute(model, model_fork(model, NULL), MODEL_TICKETS, tickets[i]);
    model_ticks(model, 100);
    return model;
}

static double cpus_used(const struct model *model, uint32_t task, uint64_t run_time, uint64_t since)
{
    return (double)(model->tasks[task]->task.run_time - run_time) / (double)(model->now - since);
}

static void tasks_that_no_partition_serves_change_places(void)
{
    static const uint32_t tickets[] = {4, 3, 3};
    struct model *model = machine_of(2, tickets, 3);
    model_ticks(model, 20000);
    for (uint32_t i = 0; i < 3; i++)
        check(fabs(cpus_used(model, i, 0, 0) - 0.2 * tickets[i]) < 0.02);
    model_free(model);
}

static void who_is_due_more_than_a_cpu_gets_one_and_builds_up_no_claim(void)
{
    static const uint32_t tickets[] = {1000, 1, 1, 1, 1};
    struct model *model = machine_of(3, tickets, 5);
    uint64_t run_time = model->tasks[0]->task.run_time;
    uint64_t since = model->now;
    model_ticks(model, 5000);
    check(cpus_used(model, 0, run_time, since) > 0.999);
    const struct drawing_task *heavy = model->tasks[0]->task.state;
    int64_t lead = shares_lead(&model->queues[model->tasks[0]->task.cpu], &heavy->member);
    check(lead > -shares_ticks(&model->queues[0], 32));
    for (uint32_t i = 1; i < 5; i++)
        check(fabs(cpus_used(model, i, 0, 0) - 0.5) < 0.03);

    /* Six such tasks: half a CPU each at once, regardless of the first task's history. */
    for (int i = 0; i < 5; i++)
        model_set_attribute(model, model_fork(model, NULL), MODEL_TICKETS, 1000);
    run_time = model->tasks[0]->task.run_time;
    since = model->now;
    model_ticks(model, 5000);
    check(fabs(cpus_used(model, 0, run_time, since) - 0.5) < 0.03);
    model_free(model);
}

static uint32_t moves_in(struct model *model, uint32_t ticks)
{
    uint32_t moves = 0;
    uint32_t cpu[16];
    for (uint32_t i = 0; i < ticks; i++) {
        for (uint32_t task = 0; task < model->task_count; task++)
            cpu[task] = model->tasks[task]->task.cpu;
        model_tick(model);
        for (uint32_t task = 0; task < model->task_count; task++)
            moves += cpu[task] != model->tasks[task]->task.cpu;
    }
    return moves;
}

static void nobody_moves_when_all_is_even(void)
{
    static const uint32_t tickets[] = {5, 3, 3, 2, 2, 1};
    struct model *model = machine_of(2, tickets, 6);
    check(moves_in(model, 5000) == 0);
    model_free(model);
    static const uint32_t uneven[] = {1, 1, 1};
    model = machine_of(2, uneven, 3);
    uint32_t moves = moves_in(model, 5000);
    check(moves > 100 && moves < 1000);
    model_free(model);
}

static void who_wakes_stays_unless_another_cpu_is_idle(void)
{
    static const uint32_t tickets[] = {50, 50, 1};
    struct model *model = machine_of(3, tickets, 3);
    struct model_task *first = model->tasks[0];
    uint32_t cpu = first->task.cpu;
    struct model_task *other = model_fork(model, NULL); /* on the CPU of the task with one ticket */
    check(other->task.cpu == model->tasks[2]->task.cpu && other->task.cpu != cpu);
    model_block(model, cpu);
    if (other->task.cpu != cpu && model->tasks[2]->task.cpu != cpu)
        model_ticks(model, 2);
    check(model->cpus[cpu].current != NULL); /* it stole one of the two */
    model_wake(model, first);
    check(first->task.cpu == cpu);
    model_free(model);
}

static void a_preset_of_static_balance_moves_no_task(void)
{
    struct model *model = model_new("lottery:thesis", 2, 1);
    for (uint32_t i = 0; i < 3; i++)
        check(model_fork(model, NULL)->task.cpu == i / 2);
    model_block(model, 1);
    model_ticks(model, 10);
    check(!model->cpus[1].current && model->queues[0].queued == 1);
    model_free(model);
}

/*
 * A running task has left its queue. Among several CPUs with equally few waiting tickets, the
 * lowest is chosen.
 */
static void a_study_places_by_the_tickets_that_wait(void)
{
    struct model *model = model_new("lottery:thesis", 3, 1);
    struct model_task *first = model_fork(model, NULL);
    check(first->task.cpu == 0 && model->cpus[0].current == first);
    struct model_task *second = model_fork(model, NULL); /* no task waits anywhere */
    check(second->task.cpu == 0 && model->queues[0].queued == 1);
    struct model_task *third = model_fork(model, NULL);
    check(third->task.cpu == 1 && model->cpus[1].current == third);
    check(model_fork(model, NULL)->task.cpu == 1); /* no more than on CPU 2 */
    model_free(model);
}

static void periodic_balance_evens_the_sums(void)
{
    struct model *model = machine_set("balance", BALANCE_PERIODIC, 2);
    for (int i = 0; i < 8; i++)
        model_fork(model, NULL); /* 0: 1 3 5 7, 1: 2 4 6 8 */
    for (int i = 0; i < 8; i += 2)
        model_set_attribute(model, model->tasks[i], MODEL_TICKETS, 10);
    check(moves_in(model, 99) == 0);
    check(moves_in(model, 1) >= 1);
    model_ticks(model, 2000);
    const struct drawing_queue *queue = model->queues[0].state;
    check(queue->shares.weight == 22 * SCALE); /* of 44 */
    check(moves_in(model, 1000) == 0);
    model_free(model);
}

/* Tickets are lent along a chain, and returned when the wait ends. */
static void tickets_are_lent_to_the_task_that_is_waited_for(void)
{
    struct model *model = model_new("lottery:transfers", 1, 1);
    struct model_task *tasks[3];
    for (uint32_t i = 0; i < 3; i++) {
        tasks[i] = model_fork(model, NULL);
        model_set_attribute(model, tasks[i], MODEL_TICKETS, 10 + 90 * i);
    }
    for (uint32_t i = 2; i > 0; i--) {
        while (model_running(model, 0) != tasks[i]->task.pid)
            model_tick(model);
        model_block(model, 0);
        model_name_owner(model, tasks[i], tasks[i - 1]);
    }
    check(tasks[0]->task.lent == 100 + 190 && tasks[1]->task.lent == 190);
    model_set_attribute(model, tasks[2], MODEL_TICKETS, 7);
    check(tasks[0]->task.lent == 107);
    model_wake(model, tasks[1]);
    check(tasks[0]->task.lent == 0 && tasks[1]->task.lent == 7);
    check(((struct drawing_task *)tasks[1]->task.state)->base_units ==
          (100 + 7) * lottery_unit(&model->scheduler));
    model_free(model);
}

/*
 * A task competes with its own and lent tickets. In 10,000 draws, a part p is off by less than 5
 * standard errors, √(10,000 p (1 − p)).
 */
static void the_next_of_those_that_wait_is_drawn_by_tickets(void)
{
    static const uint32_t had[] = {10, 30, 50};
    const uint32_t draws = 10000;
    struct model *model = machine_set("overtake", 1, 1);
    uint32_t wins[3] = {0};
    for (uint32_t i = 0; i < 3; i++)
        model_set_attribute(model, model_fork(model, NULL), MODEL_TICKETS, had[i]);
    for (uint32_t i = 0; i < 3; i++)
        model_block(model, 0);
    model->tasks[0]->task.lent = 10;
    for (uint32_t i = 0; i < draws; i++) {
        const struct model_task *winner = model_choose_waiter(model, model->tasks, 3);
        wins[winner->task.pid - 1]++;
    }
    for (uint32_t i = 0; i < 3; i++) {
        double part = (had[i] + (i == 0 ? 10 : 0)) / 100.0;
        check(fabs(wins[i] - draws * part) < 5 * sqrt(draws * part * (1 - part)));
    }
    check(model_choose_waiter(model, model->tasks + 2, 1) == model->tasks[2]);
    model_free(model);
}

static void without_that_the_one_that_came_first_goes_on(void)
{
    struct model *model = model_new("lottery:transfers", 1, 1);
    uint64_t random;
    for (uint32_t i = 0; i < 3; i++)
        model_set_attribute(model, model_fork(model, NULL), MODEL_TICKETS, 1 + i * 1000);
    random = drawing_queue_of(&model->queues[0])->random;
    for (uint32_t i = 0; i < 100; i++)
        check(model_choose_waiter(model, model->tasks, 3) == model->tasks[0]);
    check(drawing_queue_of(&model->queues[0])->random == random);
    model_free(model);
}

/* ---- currencies ---- */

#define GROUPS 6

static void set_group(struct model *model, uint32_t group, enum group_field field, int64_t value)
{
    check(group_value_allowed(group, field, value));
    group_set(&model->scheduler, group, field, value);
}

static struct model_task *fork_into(struct model *model, uint32_t group, uint32_t tickets)
{
    struct model_task *task = model_fork(model, NULL);
    model_set_attribute(model, task, (enum model_attribute)ATTRIBUTE_TASKGROUP, group);
    model_set_attribute(model, task, MODEL_TICKETS, tickets);
    return task;
}

/* Groups 1 and 2, of weights 100 and 300, each with a task of 1 ticket and a task of 3. */
static struct model *machine_with_currencies(uint32_t cpus)
{
    struct model *model = model_new("lottery:currencies", cpus, 1);
    set_group(model, 1, GROUP_WEIGHT, 100);
    set_group(model, 2, GROUP_WEIGHT, 300);
    for (uint32_t i = 0; i < 4; i++)
        fork_into(model, 1 + i / 2, 1 + 2 * (i % 2));
    return model;
}

/* Each currency's tree holds its waiting tasks; the sums cover all waiting and running tasks. */
static void check_currencies(struct model *model)
{
    const struct group_sums *sums = model->scheduler.state;
    uint64_t active[GROUPS_MAX] = {0};
    for (uint32_t queue = 0; queue < model->scheduler.queues; queue++) {
        uint64_t count = 0;
        for (uint32_t group = 0; group < GROUPS_MAX; group++) {
            const struct ticket_tree *tree = currency_tree(&model->queues[queue], group);
            struct subtree all = check_subtree(tree->root, NULL);
            check(all.count == tree->count && all.tickets == ticket_tree_total(tree));
            count += all.count;
        }
        check(count == model->queues[queue].queued);
    }
    for (uint32_t i = 0; i < model->task_count; i++) {
        const struct model_task *task = model->tasks[i];
        const struct currency_task *state = task->task.state;
        bool competes = task->place == MODEL_QUEUED || task->place == MODEL_RUNNING;
        if (task->place == MODEL_ENDED)
            continue;
        check((state->member.active > 0) == competes);
        check(task->place != MODEL_QUEUED || state->member.active == task->task.tickets * SCALE);
        check(task->place != MODEL_QUEUED ||
              TICKET_NODE(&task->task)->tickets == state->member.active);
        active[state->member.group] += state->member.active;
    }
    for (uint32_t group = 0; group < GROUPS_MAX; group++)
        check(sums->active[group] == active[group]);
}

static void sums_of_currencies_agree(void)
{
    for (uint32_t cpus = 1; cpus <= 3; cpus++) {
        struct model *model = machine_with_currencies(cpus);
        test_random_state = cpus;
        for (int step = 0; step < 800; step++) {
            uint32_t group = 1 + (uint32_t)test_random(GROUPS - 1);
            struct model_task *task = model->tasks[test_random(model->task_count)];
            any_step(model);
            if (step % 9 == 0)
                set_group(model, group, GROUP_PARENT, (int64_t)test_random(group));
            if (step % 4 == 0 && task->place != MODEL_ENDED)
                model_set_attribute(model, task, (enum model_attribute)ATTRIBUTE_TASKGROUP,
                                    (uint32_t)test_random(GROUPS));
            check_currencies(model);
        }
        model_free(model);
    }
}

/* Returns the share of the task's run time in percent of all CPUs. */
static double percent_of(struct model *model, const struct model_task *task, uint64_t ticks)
{
    uint64_t before = task->task.run_time;
    model_ticks(model, (int)ticks);
    return 100 * (double)(task->task.run_time - before) / (double)(ticks * MODEL_TICK_NS) /
           model->scheduler.cpus;
}

static bool is_about(double value, double due)
{
    return fabs(value - due) < 1.5;
}

/*
 * Group 1's tasks have 1/4 and 3/4 of a quarter; group 2's tasks have 1/4 and 3/4 of three
 * quarters.
 */
static void tickets_count_within_their_currency(void)
{
    static const double due[] = {6.25, 18.75, 18.75, 56.25};
    struct model *model = machine_with_currencies(1);
    for (uint32_t i = 0; i < 4; i++)
        check(is_about(percent_of(model, model->tasks[i], 20000), due[i]));
    model_free(model);
}

/*
 * A task with a thousand times the tickets takes time only from its own currency. If it blocks, its
 * share stays in the currency.
 */
static void inflation_and_sleep_stay_within_a_currency(void)
{
    struct model *model = machine_with_currencies(1);
    model_set_attribute(model, model->tasks[0], MODEL_TICKETS, 3000);
    check(is_about(percent_of(model, model->tasks[0], 20000), 25));
    check(is_about(percent_of(model, model->tasks[3], 20000), 56.25));
    while (model_running(model, 0) != model->tasks[0]->task.pid)
        model_tick(model);
    model_block(model, 0);
    check(is_about(percent_of(model, model->tasks[1], 20000), 25));
    check(is_about(percent_of(model, model->tasks[3], 20000), 56.25));
    model_free(model);
}

/*
 * Group 3 has half of group 2's tickets and shares this half with its task. The root's own tasks
 * draw at the same level as the groups.
 */
static void currencies_back_currencies(void)
{
    struct model *model = machine_with_currencies(1);
    set_group(model, 3, GROUP_PARENT, 2);
    set_group(model, 3, GROUP_WEIGHT, 4);
    struct model_task *deep = fork_into(model, 3, 7);
    struct model_task *plain = fork_into(model, 0, 100);
    check(is_about(percent_of(model, deep, 20000), 30));
    check(is_about(percent_of(model, plain, 20000), 20));
    model_free(model);
}

/* On two CPUs, a group with half of the tickets has half of both, wherever its tasks are. */
static void a_currency_is_one_on_several_cpus(void)
{
    struct model *model = model_new("lottery:currencies", 2, 1);
    struct model_task *tasks[8];
    uint64_t had[2] = {0};
    set_group(model, 1, GROUP_WEIGHT, 100);
    set_group(model, 2, GROUP_WEIGHT, 100);
    for (uint32_t i = 0; i < 8; i++)
        tasks[i] = fork_into(model, i < 6 ? 1 : 2, 1 + i);
    model_ticks(model, 40000);
    for (uint32_t i = 0; i < 8; i++)
        had[i >= 6] += tasks[i]->task.run_time;
    check(is_about(100 * (double)had[0] / (double)(had[0] + had[1]), 50));
    model_free(model);
}

int main(void)
{
    run_test(ticket_sums_are_conserved);
    run_test(draws_are_independent);
    run_test(an_lfsr_is_fair_in_the_mean_but_its_draws_depend_on_each_other);
    run_test(the_xorshift_is_that_of_the_program);
    run_test(the_generators_of_the_text_are_exact);
    run_test(a_twister_draws_independently_and_a_congruential_generator_does_not);
    run_test(narrow_generators_reach_all_tickets);
    run_test(the_thesis_reaches_every_ticket);
    run_test(draws_are_fair_while_tasks_come_and_go);
    run_test(who_holds_all_tickets_nearly_always_wins);
    run_test(the_ticket_is_remarked);
    run_test(a_slice_lasts_as_many_ticks);
    run_test(nobody_waits_longer_than_the_limit);
    run_test(newcomers_have_a_turn_in_time);
    run_test(recent_selections_decay);
    run_test(a_penalty_makes_shares_more_alike);
    run_test(the_presets_take_tickets_from_where_they_say);
    run_test(a_sleeper_gets_what_it_is_due);
    run_test(who_slept_for_long_runs_soon_but_not_for_long);
    run_test(adaptation_favours_who_blocks);
    run_test(tasks_that_no_partition_serves_change_places);
    run_test(a_study_places_by_the_tickets_that_wait);
    run_test(who_is_due_more_than_a_cpu_gets_one_and_builds_up_no_claim);
    run_test(nobody_moves_when_all_is_even);
    run_test(who_wakes_stays_unless_another_cpu_is_idle);
    run_test(a_preset_of_static_balance_moves_no_task);
    run_test(periodic_balance_evens_the_sums);
    run_test(tickets_are_lent_to_the_task_that_is_waited_for);
    run_test(the_next_of_those_that_wait_is_drawn_by_tickets);
    run_test(without_that_the_one_that_came_first_goes_on);
    run_test(sums_of_currencies_agree);
    run_test(tickets_count_within_their_currency);
    run_test(inflation_and_sleep_stay_within_a_currency);
    run_test(currencies_back_currencies);
    run_test(a_currency_is_one_on_several_cpus);
    return 0;
}
