/* SPDX-License-Identifier: MIT */

#include "workloads/api/suite.h"

enum { TESTS_MAX = 16, VARIANTS = 2 };

/*
 * The work of an iteration of the study's loops. In its table 1, ten processes
 * of 20 million iterations take 86 ticks of 10 ms of one CPU: 4.3 ns an
 * iteration. A tick is 1,000,000 iterations of workload_burn() (10 ms of a 1
 * GHz CPU), or tick_work of them. So 100 of the study's iterations are 43 *
 * tick_work / 1,000,000 of schedlab's.
 */
enum { BURN_OF_100 = 43, TICK_OF_STUDY = 1000000 };

struct measure {
    int64_t ticks;      /* the number that the study reports */
    int64_t completion; /* ticks until all had ended */
    int64_t switches;
};

static int64_t tick_work = 100000;
static int64_t runs = 1;
static int64_t variant = 1;
static int64_t bursts = 1;
static int64_t exchanged;
static struct suite_test *test;
static struct workload_channel times; /* of each process, in ticks */
static int failed;                    /* processes */

static void compute(int64_t iterations)
{
    workload_burn((uint64_t)(iterations * BURN_OF_100 * tick_work / (100 * TICK_OF_STUDY)));
}

static bool computes(const struct suite_group *group)
{
    return group->iterations > 0 && (bursts || group->sleep == 0);
}

static void member(int64_t number)
{
    static char *const echo[] = {"echo", "hi", NULL};
    const struct suite_group *group = &test->groups[number];
    int priority = test->groups[exchanged ? SUITE_GROUPS - 1 - number : number].priority;
    workload_group(group->label);
    if (priority != PRIORITY_UNCHANGED)
        workload_priority(priority);
    int64_t before = workload_ticks();
    for (int i = 0; i < group->rounds; i++) {
        if (computes(group))
            compute(group->iterations);
        if (group->sleep > 0)
            workload_sleep(group->sleep);
    }
    if (test->shortest)
        workload_send(&times, workload_ticks() - before);
    if (group->echo)
        workload_become(echo);
}

/* Returns the number of processes. */
static int64_t run_processes(void)
{
    int64_t started = 0;
    for (int group = 0; group < SUITE_GROUPS; group++) {
        for (int i = 0; i < test->groups[group].processes; i++) {
            workload_start(member, group);
            if (++started % (test->batch ? test->batch : INT64_MAX) == 0)
                failed += workload_wait_all();
        }
    }
    failed += workload_wait_all();
    return started;
}

static int64_t shortest_time(int64_t processes)
{
    int64_t shortest = INT64_MAX;
    for (int64_t i = 0; i < processes; i++) {
        int64_t time = workload_receive(&times);
        if (time >= test->shortest_from && time < shortest)
            shortest = time;
    }
    return shortest;
}

/* Starts at a random time within a tick, by the seed. */
static struct measure measure_run(void)
{
    workload_burn(workload_random((uint64_t)tick_work));
    int64_t switches = workload_switches();
    int64_t start = workload_ticks();
    int64_t processes = run_processes();
    struct measure run = {0, workload_ticks() - start, workload_switches() - switches};
    run.ticks = test->shortest && failed == 0 ? shortest_time(processes) : run.completion;
    return run;
}

/* Prints a mean, to a tenth. */
static void print_mean(struct measure sum)
{
    int64_t tenths[] = {
        (sum.ticks * 10 + runs / 2) / runs,
        (sum.completion * 10 + runs / 2) / runs,
        (sum.switches * 10 + runs / 2) / runs,
    };
    workload_print("%-10s mean %6ld.%ld %8ld.%ld %7ld.%ld\n", test->name, tenths[0] / 10,
                   tenths[0] % 10, tenths[1] / 10, tenths[1] % 10, tenths[2] / 10, tenths[2] % 10);
}

/* Marks a test by its number in the suite, from 1: one trace may contain several tests. */
static void report(int number, struct measure run)
{
    workload_tell("test", number);
    workload_tell("ticks", run.ticks);
    workload_tell("complete", run.completion);
    workload_tell("switches", run.switches);
}

static void run_test(int number)
{
    struct measure sum = {0, 0, 0};
    for (int64_t i = 1; i <= runs; i++) {
        struct measure run = measure_run();
        workload_print("%-10s %4ld %8ld %10ld %9ld\n", test->name, i, run.ticks, run.completion,
                       run.switches);
        report(number, run);
        sum.ticks += run.ticks;
        sum.completion += run.completion;
        sum.switches += run.switches;
    }
    print_mean(sum);
}

static void run_tests(const struct suite *suite, int chosen)
{
    for (int i = 0; i < suite->count; i++) {
        if (chosen >= 0 && chosen != i)
            continue;
        test = &suite->tests[i];
        run_test(i + 1);
        if (chosen < 0 && suite->pause > 0)
            workload_sleep(suite->pause);
    }
}

static int choose_test(const struct suite *suite, int *argc, char *argv[])
{
    const char *names[TESTS_MAX];
    for (int i = 0; i < suite->count; i++)
        names[i] = suite->tests[i].name;
    return workload_choose(argc, argv, names, suite->count);
}

int suite_run(const struct suite *suite, int argc, char *argv[])
{
    const struct workload_option options[] = {
        {'r', "runs of each test", &runs, 1, 1000},
        {'w', "iterations that fill a tick, 10 ns of a 1 GHz CPU each", &tick_work, 100,
         1000000000},
        {'v', "the study whose suite it is: 1, or 2 where that differs", &variant, 1, VARIANTS},
        {'b', "0: no computing before a sleep, as if a compiler had deleted it", &bursts, 0, 1},
        {'x', "1: the two groups of a test exchange their priorities", &exchanged, 0, 1},
    };
    int chosen = choose_test(suite, &argc, argv);
    workload_init(argc, argv, suite->meaning, options, sizeof(options) / sizeof(options[0]));
    if (variant == 2)
        suite->study_2();
    workload_channel_make(&times);
    workload_print("test        run    ticks completion  switches\n");
    workload_begin();
    run_tests(suite, chosen);
    int status = workload_finish();
    if (failed > 0)
        workload_print("%d processes failed\n", failed);
    return failed > 0 ? 1 : status;
}
