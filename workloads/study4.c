/* SPDX-License-Identifier: MIT */

/*
 * The three experiments of study 4, section 4: CPU-bound processes for a trace,
 * interactive processes among CPU-bound ones, and a sleeper among them.
 */

#include "workloads/api/workload.h"

enum { INTERACTIVE_ROUNDS = 20, SLEEP_TICKS = 5, PROCESSES_MAX = 500 };
enum kind { INTERACTIVE, CPU_BOUND, KINDS };

static int64_t cpu_bound = 20;
static int64_t cpu_work = 61;
static int64_t interactive = 2;
static int64_t sleeps = 1;
static int64_t delay;
static int64_t begin;
static int64_t offset = 10;
static int64_t tick_work = 100000;

static int pids[KINDS][PROCESSES_MAX];
/* How long each ran, or slept, in ticks: a pipe can hold the reports of PROCESSES_MAX. */
static struct workload_channel times[KINDS];
static int64_t forked; /* when the caller was forked */

/* Reports a time in ticks to the trace, and to the parent, which prints all of them. */
static void report_time(const char *name, enum kind kind, int64_t time)
{
    workload_tell(name, time);
    workload_send(&times[kind], time);
}

static void compute(int64_t argument)
{
    (void)argument;
    workload_group("cpu");
    workload_burn((uint64_t)(cpu_work * tick_work));
    report_time("finished", CPU_BOUND, workload_ticks() - forked);
}

static void interact(int64_t argument)
{
    (void)argument;
    workload_group("inter");
    int file = workload_create_file();
    for (int i = 0; i < INTERACTIVE_ROUNDS; i++) {
        workload_write_line(file);
        workload_sleep(SLEEP_TICKS);
    }
    report_time("finished", INTERACTIVE, workload_ticks() - forked);
}

static void sleep_among_others(int64_t argument)
{
    (void)argument;
    workload_group("sleeper");
    for (int64_t i = 0; i < sleeps; i++) {
        int64_t before = workload_ticks();
        workload_sleep(SLEEP_TICKS);
        report_time("slept", INTERACTIVE, workload_ticks() - before);
    }
}

/* Each arrives a little later than the previous one, by the seed. */
static void start(void (*run)(int64_t argument), int64_t count, int started[])
{
    for (int64_t i = 0; i < count; i++) {
        workload_burn(workload_random((uint64_t)(offset * tick_work / 100) + 1));
        forked = workload_ticks();
        started[i] = workload_start(run, 0);
    }
}

static void print_times(const char *what, enum kind kind, int64_t count)
{
    int64_t sum = 0;
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t time = workload_receive(&times[kind]);
        sum += time;
        if (time > longest)
            longest = time;
    }
    int64_t tenths = (sum * 10 + count / 2) / count;
    workload_print("%-22s %4ld, mean %5ld.%ld ticks, longest %5ld ticks\n", what, count,
                   tenths / 10, tenths % 10, longest);
}

/* All has ended. */
static int report(int status, const char *what, int64_t count)
{
    if (status != 0)
        return status;
    if (count > 0)
        print_times(what, INTERACTIVE, count);
    if (cpu_bound > 0)
        print_times("CPU-bound: finished", CPU_BOUND, cpu_bound);
    return 0;
}

static int run_trace(void)
{
    if (delay > 0)
        workload_sleep(delay);
    workload_begin();
    start(compute, cpu_bound, pids[CPU_BOUND]);
    return report(workload_finish(), "", 0);
}

static void start_mixed(void)
{
    start(interact, interactive, pids[INTERACTIVE]);
    start(compute, cpu_bound, pids[CPU_BOUND]);
}

/* The files stay until all have ended: removing them is not measured. */
static int report_mixed(int status)
{
    for (int64_t i = 0; i < interactive && status == 0; i++)
        workload_remove_file_of(pids[INTERACTIVE][i]);
    return report(status, "interactive: finished", interactive);
}

static int run_mixed(void)
{
    if (begin > 0)
        workload_sleep((int64_t)workload_random((uint64_t)begin));
    workload_begin();
    start_mixed();
    return report_mixed(workload_finish());
}

/* As the study ran it: with 2 CPU-bound processes, then with 4, and so on, in one boot. */
static int run_rounds(void)
{
    int64_t most = cpu_bound;
    int status = 0;
    workload_begin();
    for (cpu_bound = 2; cpu_bound <= most && status == 0; cpu_bound += 2) {
        workload_tell("round", cpu_bound);
        start_mixed();
        status = report_mixed(workload_wait_all() > 0);
    }
    return workload_finish() || status;
}

static int run_sleeper(void)
{
    workload_begin();
    start(compute, cpu_bound, pids[CPU_BOUND]);
    if (delay > 0)
        workload_sleep(delay);
    start(sleep_among_others, 1, pids[INTERACTIVE]);
    return report(workload_finish(), "sleeper: slept", sleeps);
}

int main(int argc, char *argv[])
{
    enum { TRACE, ROUNDS = 3 };
    static const char *const names[] = {"trace", "mixed", "sleeper", "rounds"};
    static int (*const run[])(void) = {run_trace, run_mixed, run_sleeper, run_rounds};
    const struct workload_option options[] = {
        {'c', "CPU-bound processes; trace: 3; rounds: 40, the most", &cpu_bound, 0, PROCESSES_MAX},
        {'b', "mixed: ticks within which it begins, drawn by the seed", &begin, 0, 1000000},
        {'i', "work of each, in ticks; trace: 344", &cpu_work, 0, 1000000},
        {'n', "mixed: interactive processes", &interactive, 0, PROCESSES_MAX},
        {'r', "sleeper: how often it sleeps", &sleeps, 1, PROCESSES_MAX},
        {'d', "ticks before the processes of trace, and between the others and the sleeper", &delay,
         0, 1000000},
        {'o', "most from one arrival to the next, in hundredths of a tick", &offset, 0, 10000},
        {'w', "iterations that fill a tick, 10 ns of a 1 GHz CPU each", &tick_work, 100,
         1000000000},
    };
    int chosen = workload_choose(&argc, argv, names, sizeof(names) / sizeof(names[0]));
    if (chosen == TRACE) {
        cpu_bound = 3;
        cpu_work = 344;
    }
    if (chosen == ROUNDS)
        cpu_bound = 40;
    workload_init(
        argc, argv,
        "One of study 4's experiments, which comes first: 1 trace, 2 mixed, 3 sleeper, 4 rounds.",
        options, sizeof(options) / sizeof(options[0]));
    if (chosen < 0)
        workload_wrong_usage(argv[0], "no experiment", "name one first");
    for (int kind = 0; kind < KINDS; kind++)
        workload_channel_make(&times[kind]);
    return run[chosen]();
}
