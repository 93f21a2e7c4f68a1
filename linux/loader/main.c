/* SPDX-License-Identifier: MIT */

/*
 * schedlab-linux: brings schedlab's policies to a Linux kernel with sched_ext,
 * and sends commands to the server that does so. docs/linux.md explains it.
 */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clients.h"
#include "configuration.h"
#include "control_files.h"
#include "scheduler.h"
#include "serve.h"
#include "text.h"
#include "trace.h"

#define FAILED         1
#define WRONG_USAGE    2
#define CONTROL_FOLDER "/run/schedlab"
#define CONFIGURATION  "/etc/schedlab-linux.conf"
#define UNIT           "schedlab-linux.service"
#define LOAD_LIMIT_S   120
#define LOAD_LIMIT_MAX 86400
#define TRIAL_S_MAX    (365 * 86400)

static const char usage[] =
    "usage: schedlab-linux serve [OPTION]...    run policies on this machine until it is ended\n"
    "       schedlab-linux start [OPTION]...    the same in the background, with " CONFIGURATION
    ",\n"
    "                                           by the systemd unit if it is installed\n"
    "       schedlab-linux switch NAME          to POLICY, POLICY:PRESET or fair (also: policy "
    "NAME)\n"
    "       schedlab-linux restore              switch to the kernel's fair class; the server "
    "continues\n"
    "       schedlab-linux status               the active policy and all threads\n"
    "       schedlab-linux policies             list the policies\n"
    "       schedlab-linux set PID [ATTRIBUTE] VALUE\n"
    "       schedlab-linux tunable [NAME=VALUE] list the policy's tunables, or set one\n"
    "       schedlab-linux stop                 end the server; then the fair class is active\n"
    "       schedlab-linux --version\n"
    "\n"
    "  --control FOLDER    folder of the control files (/run/schedlab)\n"
    "  --json              print tables as JSON\n"
    "\n"
    "serve and start:\n"
    "  --config FILE       lines NAME = VALUE with the options below, such as policy = rr; "
    "options\n"
    "                      on the command line have priority\n"
    "  --policy NAME       first policy (fair, the kernel's own class)\n"
    "  --set NAME=VALUE    set a tunable; may be repeated\n"
    "  --seed NUMBER       seed of the policies' random numbers (from the clock)\n"
    "  --objects FOLDER    folder of the BPF objects (bpf next to this program)\n"
    "  --trace FILE        write the event trace to this file\n"
    "  --trace-memory      keep the trace in memory until the end\n"
    "  --trace-queues      also record each place in a policy's queues\n"
    "  --trace-limit MIB   end when the trace has this size ($SCHEDLAB_TRACE_LIMIT, or 4096)\n"
    "  --trace-delay MS    write each record to the file within this time (50)\n"
    "  --load-limit S      stop loading a policy after this time (120)\n"
    "  --for TIME          end after this time, such as 60s or 10min\n"
    "  --while PID         end when this process has ended\n"
    "  --background        return when the server is ready, and keep it running\n"
    "  --ignore-limits     serve even if control groups or nice values share CPU time\n"
    "  --dry-run           print the actions and change nothing\n";

enum option_number {
    OPTION_CONTROL = 256,
    OPTION_JSON,
    OPTION_POLICY,
    OPTION_SET,
    OPTION_SEED,
    OPTION_OBJECTS,
    OPTION_TRACE,
    OPTION_TRACE_MEMORY,
    OPTION_TRACE_QUEUES,
    OPTION_TRACE_LIMIT,
    OPTION_TRACE_DELAY,
    OPTION_LOAD_LIMIT,
    OPTION_FOR,
    OPTION_BACKGROUND,
    OPTION_DRY_RUN,
    OPTION_IGNORE_LIMITS,
    OPTION_WHILE,
    OPTION_CONFIG,
};

static const struct option client_options[] = {
    {"control", required_argument, NULL, OPTION_CONTROL},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const struct option serve_long_options[] = {
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"control", required_argument, NULL, OPTION_CONTROL},
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"set", required_argument, NULL, OPTION_SET},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"objects", required_argument, NULL, OPTION_OBJECTS},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"trace-memory", no_argument, NULL, OPTION_TRACE_MEMORY},
    {"trace-queues", no_argument, NULL, OPTION_TRACE_QUEUES},
    {"trace-limit", required_argument, NULL, OPTION_TRACE_LIMIT},
    {"trace-delay", required_argument, NULL, OPTION_TRACE_DELAY},
    {"load-limit", required_argument, NULL, OPTION_LOAD_LIMIT},
    {"for", required_argument, NULL, OPTION_FOR},
    {"while", required_argument, NULL, OPTION_WHILE},
    {"background", no_argument, NULL, OPTION_BACKGROUND},
    {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
    {"ignore-limits", no_argument, NULL, OPTION_IGNORE_LIMITS},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void print_usage_and_exit(void)
{
    fputs(usage, stdout);
    exit(0);
}

static void refuse(const char *format, const char *what)
{
    char reason[1024];
    snprintf(reason, sizeof(reason), format, what);
    say("%s%s; see `schedlab-linux --help`", configuration_place(), reason);
    exit(WRONG_USAGE);
}

static int64_t number_between(const char *name, const char *text, int64_t lowest, int64_t highest)
{
    int64_t number;
    if (!text_to_number(text, &number) || number < lowest || number > highest) {
        say("%s%s %s: not a whole number from %lld to %lld", configuration_place(), name, text,
            (long long)lowest, (long long)highest);
        exit(WRONG_USAGE);
    }
    return number;
}

/* ---- serve ---- */

static int64_t length_of_trial(const char *text)
{
    int64_t seconds;
    if (!text_to_seconds(text, &seconds) || seconds < 1 || seconds > TRIAL_S_MAX) {
        say("%s--for %s: not a time from 1s to %dh; write 60s or 10min, for example",
            configuration_place(), text, TRIAL_S_MAX / 3600);
        exit(WRONG_USAGE);
    }
    return seconds;
}

static void add_setting(struct serve_options *options, char *setting)
{
    if (options->setting_count == SETTINGS_MAX)
        refuse("--set %s: too many tunables", setting);
    options->settings[options->setting_count++] = setting;
}

/* A policy from the command line starts without the tunables that the configuration sets for its
 * policy. */
static void choose_policy(struct serve_options *options, char *name)
{
    size_t others = options->setting_count - options->configured_settings;
    memmove(options->settings, options->settings + options->configured_settings,
            others * sizeof(options->settings[0]));
    options->setting_count = others;
    options->configured_settings = 0;
    options->policy = name;
}

static unsigned trace_limit(const char *name, const char *text)
{
    return (unsigned)number_between(name, text, 1, TRACE_LIMIT_MIB_MAX);
}

static void take_serve_option(struct serve_options *options, int option)
{
    switch (option) {
    case OPTION_CONTROL:
        options->control = optarg;
        break;
    case OPTION_POLICY:
        choose_policy(options, optarg);
        break;
    case OPTION_SET:
        add_setting(options, optarg);
        break;
    case OPTION_SEED:
        options->seed = (uint64_t)number_between("--seed", optarg, 0, INT64_MAX);
        break;
    case OPTION_OBJECTS:
        options->objects = optarg;
        break;
    case OPTION_TRACE:
        options->trace = optarg;
        break;
    case OPTION_TRACE_MEMORY:
        options->trace_memory = true;
        break;
    case OPTION_TRACE_QUEUES:
        options->trace_queues = true;
        break;
    case OPTION_TRACE_LIMIT:
        options->trace_limit_mib = trace_limit("--trace-limit", optarg);
        break;
    case OPTION_TRACE_DELAY:
        options->trace_delay_ms =
            (unsigned)number_between("--trace-delay", optarg, 1, TRACE_DELAY_MS_MAX);
        break;
    case OPTION_LOAD_LIMIT:
        options->load_limit_s = (unsigned)number_between("--load-limit", optarg, 1, LOAD_LIMIT_MAX);
        break;
    case OPTION_FOR:
        options->trial_s = length_of_trial(optarg);
        break;
    case OPTION_WHILE:
        options->lifeline = (pid_t)number_between("--while", optarg, 1, INT32_MAX);
        break;
    case OPTION_CONFIG: /* it was read before all other options */
        break;
    case OPTION_BACKGROUND:
        options->background = true;
        break;
    case OPTION_DRY_RUN:
        options->dry_run = true;
        break;
    case OPTION_IGNORE_LIMITS:
        options->ignore_limits = true;
        break;
    case 'h':
        print_usage_and_exit();
        break;
    default: /* getopt has printed the error */
        exit(WRONG_USAGE);
    }
}

/* ---- the configuration ---- */

static bool is_yes(const char *name, const char *value)
{
    if (strcmp(value, "yes") && strcmp(value, "no")) {
        say("%s%s: '%s' is not yes or no", configuration_place(), name, value);
        exit(WRONG_USAGE);
    }
    return value[0] == 'y';
}

/* A setting is an option of serve without its dashes. Options for a single start are not
 * settings. */
static void take_setting(void *options, const char *name, char *value)
{
    static const char *const of_a_start[] = {"config", "while", "background", "dry-run", "help"};
    const struct option *option = serve_long_options;
    bool is_setting = true;
    for (size_t i = 0; i < sizeof(of_a_start) / sizeof(of_a_start[0]); i++)
        is_setting = is_setting && strcmp(name, of_a_start[i]);
    while (option->name && strcmp(option->name, name))
        option++;
    if (!is_setting || !option->name)
        refuse("%s: unknown setting", name);
    if (option->has_arg == no_argument && !is_yes(name, value))
        return;
    optarg = value;
    take_serve_option(options, option->val);
}

static void read_configuration(struct serve_options *options, const char *path)
{
    if (configuration_read(path, take_setting, options))
        exit(WRONG_USAGE);
    if (!scheduler_accepts(options->policy, options->settings, options->setting_count)) {
        say("%s: %s", path, scheduler_problem());
        exit(WRONG_USAGE);
    }
    options->configured_settings = options->setting_count;
}

/* Returns the file that --config names, or else `fallback`. */
static const char *configuration_of(int count, char **words, const char *fallback)
{
    int option;
    const char *path = fallback;
    opterr = 0; /* errors are reported when all options are processed */
    while ((option = getopt_long(count, words, "h", serve_long_options, NULL)) >= 0)
        path = option == OPTION_CONFIG ? optarg : path;
    opterr = 1;
    optind = 0; /* start over */
    return path;
}

/* ---- serve, start ---- */

/* Returns the directory bpf next to this program. */
static const char *user_objects(void)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - sizeof("bpf"));
    if (length < 0)
        return "bpf";
    path[length] = '\0';
    char *name = strrchr(path, '/') + 1;
    memcpy(name, "bpf", sizeof("bpf"));
    return path;
}

static uint64_t seed_from_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct serve_options read_serve_options(int count, char **words, const char *configuration)
{
    struct serve_options options = {
        .policy = FAIR_CLASS,
        .control = CONTROL_FOLDER,
        .objects = user_objects(),
        .seed = seed_from_clock(),
        .load_limit_s = LOAD_LIMIT_S,
        .trace_delay_ms = TRACE_DELAY_MS,
        .trace_limit_mib = TRACE_LIMIT_MIB,
    };
    const char *limit = getenv("SCHEDLAB_TRACE_LIMIT");
    if (limit)
        options.trace_limit_mib = trace_limit("SCHEDLAB_TRACE_LIMIT", limit);
    int option;
    configuration = configuration_of(count, words, configuration);
    if (configuration)
        read_configuration(&options, configuration);
    while ((option = getopt_long(count, words, "h", serve_long_options, NULL)) >= 0)
        take_serve_option(&options, option);
    if (optind < count)
        refuse("serve %s: unexpected argument; leave it out", words[optind]);
    if (options.trace_memory && !options.trace)
        refuse("%s: works only with --trace; add --trace FILE", "--trace-memory");
    if (options.trace_queues && !options.trace)
        refuse("%s: works only with --trace; add --trace FILE", "--trace-queues");
    return options;
}

static int serve_command(int count, char **words)
{
    struct serve_options options = read_serve_options(count, words, NULL);
    return serve(&options);
}

static bool systemd_has_unit(void)
{
    static const char *const folders[] = {"/etc/systemd/system", "/usr/lib/systemd/system",
                                          "/lib/systemd/system"};
    char path[128];
    bool has_match = false;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/" UNIT, folders[i]);
        has_match = has_match || access(path, R_OK) == 0;
    }
    return has_match && access("/run/systemd/system", F_OK) == 0;
}

/* Errors are reported here, not in systemd's journal. */
static int start_by_systemd(const struct serve_options *options)
{
    if (!serve_is_right_usage(options) || !serve_is_possible(options))
        return WRONG_USAGE;
    execlp("systemctl", "systemctl", "start", UNIT, (char *)NULL);
    say("systemctl: cannot be started: %s; use `schedlab-linux serve`", strerror(errno));
    return FAILED;
}

static int start_command(int count, char **words)
{
    const char *configuration = access(CONFIGURATION, F_OK) ? NULL : CONFIGURATION;
    struct serve_options options = read_serve_options(count, words, configuration);
    if (count == 1 && systemd_has_unit())
        return start_by_systemd(&options);
    options.background = true;
    return serve(&options);
}

/* ---- clients ---- */

static void take_client_options(struct client *client, int count, char **words)
{
    int option;
    *client = (struct client){.control = CONTROL_FOLDER};
    while ((option = getopt_long(count, words, "h", client_options, NULL)) >= 0) {
        if (option == OPTION_CONTROL)
            client->control = optarg;
        else if (option == OPTION_JSON)
            client->as_json = true;
        else if (option == 'h')
            print_usage_and_exit();
        else
            exit(WRONG_USAGE);
    }
}

static void want_words(const char *command, int given, int least, int most)
{
    if (given < least)
        refuse("%s: arguments are missing", command);
    if (given > most)
        refuse("%s: too many arguments", command);
}

/* "set PID VALUE" or "set PID priority VALUE", "tunable NAME=VALUE", "policy NAME". */
static int client_main(const char *command, int count, char **words)
{
    struct client client;
    take_client_options(&client, count, words);
    char **rest = words + optind;
    int given = count - optind;
    if (strcmp(command, "set") == 0) {
        want_words(command, given, 2, 3);
        return client_command(&client, CONTROL_STATUS, rest, (size_t)given);
    }
    if (strcmp(command, "policy") == 0 || strcmp(command, "switch") == 0) {
        want_words(command, given, 1, 1);
        return client_command(&client, CONTROL_STATUS, rest, 1);
    }
    if (strcmp(command, "tunable") == 0 && given > 0) {
        want_words(command, given, 1, 2);
        return client_command(&client, CONTROL_TUNABLES, rest, (size_t)given);
    }
    want_words(command, given, 0, 0);
    if (strcmp(command, "restore") == 0)
        return client_restore(&client);
    if (strcmp(command, "stop") == 0)
        return client_stop();
    if (strcmp(command, "tunable") == 0)
        return client_tunables(&client);
    return strcmp(command, "policies") == 0 ? client_policies(&client) : client_status(&client);
}

int main(int count, char **words)
{
    static const char *const clients[] = {"status", "policies", "policy",  "switch",
                                          "set",    "tunable",  "restore", "stop"};
    if (count < 2) {
        fputs(usage, stderr);
        return WRONG_USAGE;
    }
    if (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0)
        print_usage_and_exit();
    if (strcmp(words[1], "--version") == 0) {
        puts("schedlab-linux " SCHEDLAB_VERSION);
        return 0;
    }
    if (strcmp(words[1], "serve") == 0)
        return serve_command(count - 1, words + 1);
    if (strcmp(words[1], "start") == 0)
        return start_command(count - 1, words + 1);
    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
        if (strcmp(words[1], clients[i]) == 0)
            return client_main(words[1], count - 1, words + 1);
    }
    refuse("%s: unknown command", words[1]);
    return WRONG_USAGE;
}
