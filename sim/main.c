/* SPDX-License-Identifier: MIT */

/* The simulator as a command: performs one run, and writes its trace and counts. */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policies/policy.h"
#include "sim/control.h"
#include "sim/crash_report.h"
#include "sim/workload.h"

static const char usage[] =
    "usage: schedlab-sim [OPTION]... WORKLOAD\n"
    "       schedlab-sim [OPTION]... --continue CHECKPOINT\n"
    "       schedlab-sim --batch\n"
    "\n"
    "Runs a workload file (`./schedlab workloads FILE.json --output WORKLOAD` makes one; - for\n"
    "the standard input) under a policy, and prints its counters, a name and a number per line.\n"
    "\n"
    "  --policy NAME[:PRESET]    the policy (rr); scx:IMAGE is a scheduler of sched_ext\n"
    "  --set NAME=VALUE,...      its tunables\n"
    "  --cpus N                  1 to 1024 (1)\n"
    "  --processes N             maximum number of processes at once (4096)\n"
    "  --seed N                  (1)\n"
    "  --tick NS                 the length of a tick in nanoseconds (1000000)\n"
    "  --limit NS                ends the run at this time (60000000000)\n"
    "  --costs COSTS             kernel, none or textbook, with changes:\n"
    "                            kernel,fork=9000 (kernel)\n"
    "  --shape SHAPE             shape of the machine (policies/support/shape_text.h; all CPUs\n"
    "                            are equal)\n"
    "  --trace FILE              writes the event trace to this file\n"
    "  --no-trace                writes no trace; required without --trace\n"
    "  --trace-queues            also records each place in a queue\n"
    "  --save FILE               saves the run in this file instead of ending it at the limit\n"
    "  --at NS                   saves it at this time\n"
    "  --continue FILE           continues a saved run and its trace\n"
    "  --callbacks FILE          also writes the callbacks of a scheduler of sched_ext\n"
    "  --speed                   also prints the run's duration, which varies\n"
    "  --batch                   performs many runs: reads the arguments of each run from the\n"
    "                            standard input, each with a null byte at its end and an empty\n"
    "                            one after the last, and prints the exit status of each run\n"
    "\n"
    "Exit status: 0: the first process ended with status 0, or the run was saved; 1: another\n"
    "status, the run failed, or it ended before --at; 2: wrong usage; 3: the limit was reached.\n";

struct options {
    struct simulator_setup setup;
    const char *workload;
    const char *save;    /* the checkpoint to write; null: none */
    const char *restore; /* the checkpoint to resume; null: a new run begins */
    uint64_t limit;
    uint64_t save_at; /* when to save; NEVER: at the limit */
    bool describes;   /* prints the machine */
    bool no_trace;
    bool speed;
};

#define NEVER UINT64_MAX

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
    {"policy", required_argument, NULL, 'p'},
    {"set", required_argument, NULL, 's'},
    {"cpus", required_argument, NULL, 'c'},
    {"processes", required_argument, NULL, 'n'},
    {"seed", required_argument, NULL, 'r'},
    {"tick", required_argument, NULL, 't'},
    {"limit", required_argument, NULL, 'l'},
    {"costs", required_argument, NULL, 'k'},
    {"trace", required_argument, NULL, 'o'},
    {"no-trace", no_argument, NULL, 'x'},
    {"trace-queues", no_argument, NULL, 'q'},
    {"speed", no_argument, NULL, 'v'},
    {"save", required_argument, NULL, 'f'},
    {"at", required_argument, NULL, 'a'},
    {"continue", required_argument, NULL, 'g'},
    {"shape", required_argument, NULL, 'm'},
    {"callbacks", required_argument, NULL, 'b'},
    {"batch", no_argument, NULL, 'y'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void take_option(struct options *options, int letter, const char *name, const char *value)
{
    struct simulator_setup *setup = &options->setup;
    struct simulator_error error;
    options->describes |= strchr("pscnrtkqmb", letter) != NULL;
    switch (letter) {
    case 'p':
        setup->policy = value;
        break;
    case 's':
        if (setup->tunables)
            wrong_usage("--set: given twice; join its values with commas");
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
    case 'm':
        setup->shape = value;
        break;
    case 'o':
        setup->trace = value;
        break;
    case 'x':
        options->no_trace = true;
        break;
    case 'q':
        setup->trace_queues = true;
        break;
    case 'b':
        setup->callbacks = value;
        break;
    case 'v':
        options->speed = true;
        break;
    case 'f':
        options->save = value;
        break;
    case 'a':
        options->save_at = number(name, value, UINT64_MAX - 1);
        break;
    case 'g':
        options->restore = value;
        break;
    case 'y':
        wrong_usage("--batch: takes no other arguments");
    case 'h':
        fputs(usage, stdout);
        exit(0);
    default: /* getopt_long() has printed the error */
        exit(EXIT_WRONG_USAGE);
    }
}

static void check_options(const struct options *options)
{
    if ((options->setup.trace != NULL) == options->no_trace)
        wrong_usage("--trace and --no-trace: give exactly one of them");
    if (options->restore && options->describes)
        wrong_usage("--continue: the checkpoint determines the machine; add only --limit, "
                    "--trace or --no-trace, --save, --at and --speed");
    if (options->save_at != NEVER && !options->save)
        wrong_usage("--at: works only with --save; add --save FILE");
    if (options->save_at != NEVER && options->save_at > options->limit)
        wrong_usage("--at: must be before --limit");
}

static struct options read_options(int argument_count, char **arguments)
{
    struct options options = {
        .setup = {.policy = "rr",
                  .cpus = 1,
                  .tick_ns = 1000000,
                  .seed = 1,
                  .costs = simulator_costs_kernel()},
        .limit = 60000000000,
        .save_at = NEVER,
    };
    int letter;
    int index = 0;
    while ((letter = getopt_long(argument_count, arguments, "", long_options, &index)) != -1)
        take_option(&options, letter, long_options[index].name, optarg);
    if (optind != argument_count - !options.restore)
        wrong_usage(options.restore ? "--continue: the checkpoint has the workload; leave the "
                                      "workload out"
                                    : "expected exactly one workload");
    options.workload = arguments[optind];
    check_options(&options);
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

static _Noreturn void refuse(const struct simulator_error *error)
{
    fprintf(stderr, "schedlab-sim: %s\n", error->text);
    exit(EXIT_WRONG_USAGE);
}

static struct simulator_workload load(const struct options *options)
{
    struct simulator_workload workload;
    struct simulator_error error;
    if (!simulator_load_workload(&workload, options->workload, options->setup.tick_ns, &error))
        refuse(&error);
    return workload;
}

static struct simulator *begin(const struct options *options)
{
    struct simulator *simulator;
    struct simulator_error error;
    if (options->restore) {
        simulator = simulator_restore(options->restore, options->setup.trace, &error);
    } else {
        struct simulator_workload workload = load(options);
        simulator = simulator_create(&options->setup, &workload, &error);
        simulator_free_workload(&workload);
    }
    if (!simulator)
        refuse(&error);
    return simulator;
}

struct outcome {
    enum simulator_status status;
    bool saved;
    struct simulator_counts counts;
    double seconds;
    struct simulator_error error;
};

/* Runs the machine until its end, or until the time of the checkpoint. */
static void simulate(const struct options *options, struct outcome *outcome)
{
    struct simulator *simulator = begin(options);
    double begin = cpu_seconds();
    uint64_t until = options->save_at < options->limit ? options->save_at : options->limit;
    bool good = true;
    last_words_begin(simulator);
    outcome->status = simulator_run(simulator, until, &outcome->error);
    last_words_end();
    outcome->saved = options->save && outcome->status == SIMULATOR_TIME;
    if (outcome->saved)
        good = simulator_save(simulator, options->save, &outcome->error);
    else if (outcome->status != SIMULATOR_FAILED)
        good = simulator_finish(simulator, &outcome->error);
    if (!good)
        outcome->status = SIMULATOR_FAILED;
    outcome->seconds = cpu_seconds() - begin;
    simulator_count(simulator, &outcome->counts);
    simulator_destroy(simulator);
}

/* Returns the exit status. If it is not 0, prints the reason. */
static int exit_status(const struct options *options, const struct outcome *outcome)
{
    int64_t status = outcome->counts.exit_status;
    if (outcome->saved) {
        fprintf(stderr, "schedlab-sim: saved at %" PRIu64 " ns: --continue %s\n",
                outcome->counts.now, options->save);
        return 0;
    }
    if (outcome->status == SIMULATOR_TIME) {
        fprintf(stderr, "schedlab-sim: the limit of %" PRIu64 " ns was reached\n", options->limit);
        return EXIT_LIMIT;
    }
    if (status != 0)
        fprintf(stderr, "schedlab-sim: the first process ended with status %" PRId64 "\n", status);
    if (options->save)
        fprintf(stderr, "schedlab-sim: the run ended before the time of --at\n");
    return status != 0 || options->save;
}

/* Performs a run, and returns its exit status. If it is not 0, prints the reason. */
static int perform(const struct options *options)
{
    struct outcome outcome;
    simulate(options, &outcome);
    if (outcome.status == SIMULATOR_FAILED) {
        fprintf(stderr, "schedlab-sim: %s\n", outcome.error.text);
        return EXIT_FAILURE;
    }
    print_counts(&outcome.counts);
    if (options->speed)
        printf("cpu_seconds %.6f\ndecisions_per_second %.0f\n", outcome.seconds,
               (double)outcome.counts.decisions / outcome.seconds);
    return exit_status(options, &outcome);
}

/* ---- many runs in one process ---- */

#define BATCH_BYTES_MAX 65536 /* the longest arguments of a run, in bytes */
#define BATCH_WORDS_MAX 64

/* Reads the arguments of the next run into `words`, and their bytes into `text`. Returns their
 * number, or 0 at the end of the standard input. */
static int read_words(char *text, char **words)
{
    size_t used = 0;
    int count = 0;
    size_t begin = 0;
    int byte;
    while ((byte = getchar()) != EOF) {
        if (used == BATCH_BYTES_MAX || count == BATCH_WORDS_MAX)
            wrong_usage("--batch: a run has too many arguments");
        text[used++] = (char)byte;
        if (byte != '\0')
            continue;
        if (begin + 1 == used)
            return count;
        words[count++] = text + begin;
        begin = used;
    }
    return 0;
}

/* Performs runs until the standard input ends. Wrong usage and crashes end the whole process, so
 * the caller repeats such a run alone. */
static int perform_batch(char *program)
{
    static char text[BATCH_BYTES_MAX];
    char *words[BATCH_WORDS_MAX + 2] = {program};
    int count;
    while ((count = read_words(text, words + 1)) > 0) {
        words[count + 1] = NULL;
        optind = 1;
        struct options options = read_options(count + 1, words);
        struct outcome outcome;
        simulate(&options, &outcome);
        printf("%d\n",
               outcome.status == SIMULATOR_FAILED ? EXIT_FAILURE : exit_status(&options, &outcome));
        fflush(stdout);
    }
    return 0;
}

int main(int argument_count, char **arguments)
{
    if (argument_count == 2 && strcmp(arguments[1], "--batch") == 0)
        return perform_batch(arguments[0]);
    struct options options = read_options(argument_count, arguments);
    return perform(&options);
}
