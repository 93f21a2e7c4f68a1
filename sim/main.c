/* SPDX-License-Identifier: MIT */

/* The simulator as a command: one run, its trace, and what it counted. */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/compile.h"
#include "sim/workload.h"

static const char usage[] =
    "usage: schedlab-sim [OPTION]... WORKLOAD\n"
    "\n"
    "Runs the workload (docs/simulator.md; - for the standard input) under a policy, and\n"
    "prints what was counted, a name and a number on each line.\n"
    "\n"
    "  --policy NAME[:PRESET]    the policy (rr)\n"
    "  --set NAME=VALUE,...      its tunables\n"
    "  --cpus N                  1 to 256 (1)\n"
    "  --processes N             that may live at once, at most (4096)\n"
    "  --seed N                  (1)\n"
    "  --tick NS                 the length of a tick in nanoseconds (1000000)\n"
    "  --limit NS                ends the run at this time (60000000000)\n"
    "  --costs COSTS             kernel, none, or either and changes: kernel,fork=9000 (kernel)\n"
    "  --trace FILE              where the event trace goes\n"
    "  --no-trace                no trace: needed if there is no --trace\n"
    "  --speed                   also how long it took, which differs from run to run\n"
    "  --compile FILE            runs nothing: writes the workload as a file that the kernel's\n"
    "                            program `play` acts out (abi/workload_file.h)\n"
    "\n"
    "Exit status: 0 the first process ended with status 0; 1 it did not, or the run failed;\n"
    "2 wrong usage; 3 the limit was reached.\n";

struct options {
    struct simulator_setup setup;
    const char *workload;
    const char *compile; /* null: it is run */
    uint64_t limit;
    bool no_trace;
    bool speed;
};

enum { EXIT_WRONG_USAGE = 2, EXIT_LIMIT = 3 };

static bool parse_number(const char *text, uint64_t *value)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    *value = strtoull(text, &end, 10);
    return *end == '\0' && *value != UINT64_MAX;
}

static uint64_t number(const char *option, const char *text, uint64_t most)
{
    uint64_t value;
    if (!parse_number(text, &value) || value > most) {
        fprintf(stderr, "schedlab-sim: --%s %s: expected a number from 0 to %" PRIu64 "\n", option,
                text, most);
        exit(EXIT_WRONG_USAGE);
    }
    return value;
}

static _Noreturn void wrong_usage(const char *text)
{
    fprintf(stderr, "schedlab-sim: %s; see schedlab-sim --help\n", text);
    exit(EXIT_WRONG_USAGE);
}

static const struct option long_options[] = {
    {"policy", required_argument, NULL, 'p'}, {"set", required_argument, NULL, 's'},
    {"cpus", required_argument, NULL, 'c'},   {"processes", required_argument, NULL, 'n'},
    {"seed", required_argument, NULL, 'r'},   {"tick", required_argument, NULL, 't'},
    {"limit", required_argument, NULL, 'l'},  {"costs", required_argument, NULL, 'k'},
    {"trace", required_argument, NULL, 'o'},  {"no-trace", no_argument, NULL, 'x'},
    {"speed", no_argument, NULL, 'v'},        {"compile", required_argument, NULL, 'b'},
    {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
};

static void take_option(struct options *options, int letter, const char *name, const char *value)
{
    struct simulator_setup *setup = &options->setup;
    struct simulator_error error;
    switch (letter) {
    case 'p':
        setup->policy = value;
        break;
    case 's':
        setup->tunables = value;
        break;
    case 'c':
        setup->cpus = (uint32_t)number(name, value, UINT32_MAX);
        break;
    case 'n':
        setup->processes = (uint32_t)number(name, value, UINT32_MAX);
        break;
    case 'r':
        setup->seed = number(name, value, UINT64_MAX - 1);
        break;
    case 't':
        setup->tick_ns = number(name, value, UINT64_MAX - 1);
        break;
    case 'l':
        options->limit = number(name, value, UINT64_MAX - 1);
        break;
    case 'k':
        if (!simulator_read_costs(&setup->costs, value, &error))
            wrong_usage(error.text);
        break;
    case 'o':
        setup->trace = value;
        break;
    case 'x':
        options->no_trace = true;
        break;
    case 'v':
        options->speed = true;
        break;
    case 'b':
        options->compile = value;
        break;
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default: /* getopt_long() has said what is wrong */
        exit(EXIT_WRONG_USAGE);
    }
}

static struct options read_options(int argument_count, char **arguments)
{
    struct options options = {
        .setup = {.policy = "rr",
                  .cpus = 1,
                  .tick_ns = 1000000,
                  .seed = 1,
                  .costs = simulator_costs_kernel},
        .limit = 60000000000,
    };
    int letter;
    int index = 0;
    while ((letter = getopt_long(argument_count, arguments, "", long_options, &index)) != -1)
        take_option(&options, letter, long_options[index].name, optarg);
    if (optind != argument_count - 1)
        wrong_usage("expected one workload");
    if (!options.compile && (options.setup.trace != NULL) == options.no_trace)
        wrong_usage("expected either --trace FILE or --no-trace");
    options.workload = arguments[optind];
    return options;
}

static void print_counts(const struct simulator_counts *counts)
{
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {
        {"time_ns", counts->now},
        {"decisions", counts->decisions},
        {"switches", counts->switches},
        {"idle_switches", counts->idle_switches},
        {"ticks", counts->ticks},
        {"forks", counts->forks},
        {"wakeups", counts->wakeups},
        {"migrations", counts->migrations},
        {"records", counts->records},
        {"idle_time_ns", counts->idle_time},
        {"process_bytes", counts->process_bytes},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        printf("%s %" PRIu64 "\n", all[i].name, all[i].value);
}

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The run from its beginning to its end; the error says what went wrong. */
static enum simulator_status simulate(const struct options *options,
                                      const struct simulator_workload *workload,
                                      struct simulator_counts *counts, double *seconds,
                                      struct simulator_error *error)
{
    struct simulator *simulator = simulator_create(&options->setup, workload, error);
    if (!simulator)
        exit((fprintf(stderr, "schedlab-sim: %s\n", error->text), EXIT_WRONG_USAGE));
    double begin = cpu_seconds();
    enum simulator_status status = simulator_run(simulator, options->limit, error);
    if (status != SIMULATOR_FAILED && !simulator_finish(simulator, error))
        status = SIMULATOR_FAILED;
    *seconds = cpu_seconds() - begin;
    simulator_count(simulator, counts);
    simulator_destroy(simulator);
    return status;
}

/* Checks the workload as a run of it would, and writes it as a file. The exit status. */
static int compile(const struct options *options, const struct simulator_workload *workload)
{
    struct simulator_setup setup = options->setup;
    struct simulator_error error;
    setup.trace = NULL;
    struct simulator *simulator = simulator_create(&setup, workload, &error);
    bool good = simulator != NULL;
    simulator_destroy(simulator);
    int failed = good ? 1 : EXIT_WRONG_USAGE;
    good = good && simulator_compile(workload, setup.tick_ns, options->compile, &error);
    if (!good)
        fprintf(stderr, "schedlab-sim: %s\n", error.text);
    return good ? 0 : failed;
}

int main(int argument_count, char **arguments)
{
    struct options options = read_options(argument_count, arguments);
    struct simulator_workload workload;
    struct simulator_error error;
    struct simulator_counts counts;
    double seconds;
    if (!simulator_load_workload(&workload, options.workload, options.setup.tick_ns, &error)) {
        fprintf(stderr, "schedlab-sim: %s\n", error.text);
        return EXIT_WRONG_USAGE;
    }
    if (options.compile) {
        int status = compile(&options, &workload);
        simulator_free_workload(&workload);
        return status;
    }
    enum simulator_status status = simulate(&options, &workload, &counts, &seconds, &error);
    simulator_free_workload(&workload);
    if (status == SIMULATOR_FAILED) {
        fprintf(stderr, "schedlab-sim: %s\n", error.text);
        return 1;
    }
    print_counts(&counts);
    if (options.speed)
        printf("cpu_seconds %.6f\ndecisions_per_second %.0f\n", seconds,
               (double)counts.decisions / seconds);
    if (status == SIMULATOR_TIME) {
        fprintf(stderr, "schedlab-sim: the limit of %" PRIu64 " ns was reached\n", options.limit);
        return EXIT_LIMIT;
    }
    if (counts.exit_status != 0)
        fprintf(stderr, "schedlab-sim: the first process ended with status %" PRId64 "\n",
                counts.exit_status);
    return counts.exit_status != 0;
}
