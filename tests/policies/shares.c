/* SPDX-License-Identifier: MIT */

/*
 * CPU shares on the model of tests/host/policy_harness.h: the six lottery tests of study 1
 * (section 4.3), and random mixes, against the ideal share of docs/metrics.md. The policy must
 * share by tickets, or by weights, which are derived from the tickets. Prints
 *
 *     share TEST CPUS GROUP TICKETS SHARE IDEAL ERROR STANDARD-ERROR
 *     moves TEST CPUS MOVES-PER-1000-TICKS-AND-CPU
 *
 * SHARE and IDEAL are in percent, as means over all seeds; ERROR is in percentage points.
 * STANDARD-ERROR is the standard error of the mean if each tick of each CPU were drawn
 * independently.
 *
 * Usage:
 *
 *     shares studies POLICY TICKS SEEDS
 *     shares random POLICY TICKS SEEDS MIXES
 */

#include <math.h>

#include "../host/policy_harness.h"

#define TASKS_MAX      64
#define SHARING_GROUPS 20

enum behaviour { COMPUTES, READS, ENDS, MIXES };

struct group {
    uint32_t tasks;
    uint32_t tickets;
    enum behaviour behaviour;
};

struct test {
    const char *name;
    uint32_t groups;
    struct group group[SHARING_GROUPS];
};

static const struct test studies[] = {
    {"low-process-count", 3, {{1, 30, 0}, {1, 20, 0}, {1, 10, 0}}},
    {"basic-fairness", 4, {{2, 30, 0}, {2, 20, 0}, {2, 10, 0}, {2, 5, 0}}},
    {"switch-overhead", 3, {{17, 30, 0}, {17, 20, 0}, {16, 10, 0}}},
    {"starvation-check", 3, {{2, 50, 0}, {2, 10, 0}, {4, 1, 0}}},
    {"grouped-ticket-levels", 3, {{10, 1, 0}, {10, 5, 0}, {10, 10, 0}}},
    {"mixed-load", 4, {{5, 20, COMPUTES}, {5, 15, READS}, {5, 10, ENDS}, {5, 5, MIXES}}},
};

/* The tasks of one run. */
struct process {
    struct model_task *task;
    uint32_t group;
    enum behaviour behaviour;
    uint64_t start;       /* run time at the start of the measurement, after a tick */
    uint64_t burst_start; /* run time at the last wake-up */
    uint64_t blocked;     /* half ticks */
    double allotment;     /* CPUs */
};

struct run {
    struct model *model;
    uint64_t half_ticks;
    uint32_t count;
    struct process process[TASKS_MAX];
};

/* Means over seeds. */
struct result {
    double share[SHARING_GROUPS];
    double ideal[SHARING_GROUPS];
    double moves;
};

static bool burst_is_over(const struct process *process, uint64_t *sleep)
{
    /* In half ticks: how long it runs before it sleeps, and how long it sleeps. */
    static const struct {
        uint64_t run, sleep;
    } bursts[] = {[COMPUTES] = {0, 0}, [READS] = {1, 10}, [ENDS] = {5, 0}, [MIXES] = {7, 2}};
    uint64_t ran = process->task->task.run_time - process->burst_start;
    *sleep = bursts[process->behaviour].sleep;
    return process->behaviour != COMPUTES &&
           ran >= bursts[process->behaviour].run * MODEL_TICK_NS / 2;
}

static void account_running(struct model *model)
{
    for (uint32_t cpu = 0; cpu < model->scheduler.cpus; cpu++) {
        if (model->cpus[cpu].current)
            model_account(model, model->cpus[cpu].current);
    }
}

/* Performs the programs' acts in the middle of a tick. */
static void act(struct run *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        struct process *process = &run->process[i];
        uint64_t sleep;
        if (process->task->place != MODEL_RUNNING || !burst_is_over(process, &sleep))
            continue;
        process->burst_start = process->task->task.run_time;
        if (process->behaviour == ENDS)
            model_end(run->model, process->task);
        else
            model_sleep(run->model, process->task->task.cpu, sleep);
    }
}

static void half_tick(struct run *run)
{
    struct model *model = run->model;
    model_advance(model, MODEL_TICK_NS / 2);
    for (uint32_t i = 0; i < run->count; i++)
        run->process[i].blocked += run->process[i].task->place == MODEL_BLOCKED;
    run->half_ticks++;
    account_running(model);
    act(run);
}

static void tick(struct run *run)
{
    half_tick(run);
    half_tick(run);
    for (uint32_t cpu = 0; cpu < run->model->scheduler.cpus; cpu++)
        model_tick_cpu(run->model, cpu);
}

static bool shares_by_weight(const struct run *run)
{
    return policy_shares_by(run->model->policy, &run->model->scheduler) == SHARES_BY_WEIGHT;
}

/* Sets tickets; where weights count, sets weights from 1 to 10 derived from the tickets. */
static void set_share(struct run *run, struct model_task *task, uint32_t tickets)
{
    model_set_attribute(run->model, task, MODEL_TICKETS, tickets);
    if (shares_by_weight(run))
        model_set_attribute(run->model, task, MODEL_WEIGHT, 1 + (tickets - 1) % WEIGHT_MAX);
}

static double share_of(const struct run *run, const struct process *process)
{
    const struct task *task = &process->task->task;
    return shares_by_weight(run) ? task->weight : task->tickets;
}

static void start(struct run *run, const struct test *test)
{
    for (uint32_t i = 0; i < test->groups; i++) {
        for (uint32_t j = 0; j < test->group[i].tasks; j++) {
            struct process *process = &run->process[run->count++];
            process->task = model_fork(run->model, NULL);
            process->group = i;
            process->behaviour = test->group[i].behaviour;
            set_share(run, process->task, test->group[i].tickets);
        }
    }
}

/* The first tick belongs to the tasks forked first, before the others had their tickets. */
static void begin(struct run *run)
{
    tick(run);
    run->half_ticks = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        run->process[i].start = run->process[i].task->task.run_time;
        run->process[i].blocked = 0;
    }
}

static double ran(const struct process *process)
{
    return (double)(process->task->task.run_time - process->start);
}

/* The CPUs that the process would use if it never had to wait (docs/metrics.md). */
static double demand(const struct run *run, const struct process *process)
{
    double elapsed = (double)run->half_ticks * MODEL_TICK_NS / 2;
    double running = ran(process);
    double blocked = (double)process->blocked * MODEL_TICK_NS / 2;
    double waiting = elapsed - running - blocked;
    if (process->task->place == MODEL_ENDED)
        return running / elapsed;
    return running > 0 ? (running + waiting * running / (running + blocked)) / elapsed : 1;
}

/* Weighted max-min by progressive filling (Bertsekas and Gallager 1987). */
static void allot(struct run *run)
{
    double cpus = run->model->scheduler.cpus;
    bool done[TASKS_MAX] = {false};
    for (uint32_t round = 0; round <= run->count; round++) {
        double weight = 0;
        uint32_t filled = 0;
        for (uint32_t i = 0; i < run->count; i++)
            weight += done[i] ? 0 : share_of(run, &run->process[i]);
        double level = weight > 0 ? cpus / weight : 0;
        for (uint32_t i = 0; i < run->count; i++) {
            struct process *process = &run->process[i];
            if (done[i])
                continue;
            double most = fmin(1, demand(run, process));
            process->allotment = fmin(most, level * share_of(run, process));
            if (most <= level * share_of(run, process)) {
                done[i] = true;
                cpus -= most;
                filled++;
            }
        }
        if (filled == 0)
            return;
    }
}

static uint64_t moves_between(const struct run *run, uint32_t *cpus)
{
    uint64_t moves = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        moves += cpus[i] != run->process[i].task->task.cpu;
        cpus[i] = run->process[i].task->task.cpu;
    }
    return moves;
}

static void measure(const struct test *test, const char *policy, uint32_t cpus, uint32_t ticks,
                    uint64_t seed, struct result *result)
{
    struct run run = {.model = model_new(policy, cpus, seed)};
    uint32_t at[TASKS_MAX];
    uint64_t moves = 0;
    start(&run, test);
    begin(&run);
    moves_between(&run, at);
    for (uint32_t i = 0; i < ticks; i++) {
        tick(&run);
        moves += moves_between(&run, at);
    }
    allot(&run);
    double all = 0;
    double allotted = 0;
    for (uint32_t i = 0; i < run.count; i++) {
        all += ran(&run.process[i]);
        allotted += run.process[i].allotment;
    }
    for (uint32_t i = 0; i < run.count; i++) {
        result->share[run.process[i].group] += ran(&run.process[i]) / all;
        result->ideal[run.process[i].group] += run.process[i].allotment / allotted;
    }
    result->moves += (double)moves / ticks / cpus;
    model_free(run.model);
}

static void report(const struct test *test, const char *policy, uint32_t cpus, uint32_t ticks,
                   uint64_t seeds)
{
    struct result result = {0};
    for (uint64_t seed = 1; seed <= seeds; seed++)
        measure(test, policy, cpus, ticks, seed, &result);
    for (uint32_t i = 0; i < test->groups; i++) {
        double share = result.share[i] / (double)seeds;
        double ideal = result.ideal[i] / (double)seeds;
        double variance = fmax(0, ideal * (1 - ideal)) / ((double)ticks * cpus * (double)seeds);
        printf("share %s %u %u %u %.3f %.3f %.3f %.3f\n", test->name, cpus, i,
               test->group[i].tickets, 100 * share, 100 * ideal, 100 * (share - ideal),
               100 * sqrt(variance));
    }
    printf("moves %s %u %.2f\n", test->name, cpus, 1000 * result.moves / (double)seeds);
}

static uint64_t mix_state;

/* splitmix64 (Steele, Lea and Flood 2014) */
static uint32_t mix_random(uint32_t limit)
{
    uint64_t value = mix_state += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return (uint32_t)((value ^ (value >> 31)) % limit);
}

/* Computing tasks, each in a separate group. */
static void report_mix(const char *policy, uint32_t ticks, uint64_t seeds, uint32_t number)
{
    char name[32];
    mix_state = number;
    snprintf(name, sizeof(name), "mix-%u", number);
    struct test test = {.name = name, .groups = 2 + mix_random(19)};
    for (uint32_t i = 0; i < test.groups; i++)
        test.group[i] = (struct group){1, 1 + mix_random(100), COMPUTES};
    report(&test, policy, 1 + mix_random(8), ticks, seeds);
}

int main(int argument_count, char **arguments)
{
    bool mixes = argument_count == 6 && strcmp(arguments[1], "random") == 0;
    if (!mixes && !(argument_count == 5 && strcmp(arguments[1], "studies") == 0)) {
        fprintf(stderr, "usage: shares studies POLICY TICKS SEEDS\n"
                        "       shares random POLICY TICKS SEEDS MIXES\n");
        return 2;
    }
    uint32_t ticks = (uint32_t)strtoul(arguments[3], NULL, 10);
    uint64_t seeds = strtoull(arguments[4], NULL, 10);
    uint32_t count = mixes ? (uint32_t)strtoul(arguments[5], NULL, 10) : 0;
    for (uint32_t i = 0; i < count; i++)
        report_mix(arguments[2], ticks, seeds, i);
    for (size_t i = 0; !mixes && i < sizeof(studies) / sizeof(studies[0]); i++) {
        for (uint32_t cpus = 1; cpus <= 5; cpus++)
            report(&studies[i], arguments[2], cpus, ticks, seeds);
    }
    return 0;
}
