/* SPDX-License-Identifier: MIT */

/*
 * Simulates the policy that is compiled in, with checks of each hook, in many configurations:
 * default values, each preset, and the least and greatest value of each tunable, on one CPU and on
 * several. Exits with status 0 if no rule was broken.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/machine_status.h"
#include "policies/registry.h"
#include "sim/checked/begins.h"
#include "sim/checked/watch.h"
#include "sim/control.h"
#include "sim/machine.h"
#include "sim/workload.h"

#define PROCESSES 40
#define TICK_NS   1000000ull
#define FULL_NS   300000000ull  /* simulated time of a run with the default tunables */
#define PART_NS   100000000ull  /* simulated time of a run with another value of a tunable */
#define SHARED_NS 2000000000ull /* simulated time of the workload whose tasks have equal shares */
#define BOUND_NS  4000000000ull /* simulated time of the workload whose tasks are bound to a CPU */
#define SHAPE                                                                                      \
    "core/2,cache/2,node/2,distance10.21:21.10" /* a machine where all CPUs are equally            \
                                                 * fast */

enum { EXIT_WRONG_USAGE = 2 };

/* The code for checkpoints needs this name. This program makes no checkpoints. */
extern const char build_name[];
const char build_name[64] = "checked";

struct progress {
    const char *workload;
    const char *sharing; /* path of the workload whose tasks have equal shares */
    const char *bound;   /* path of the workload whose tasks are bound to a CPU; "": none */
    uint32_t setups;
    uint32_t chosen; /* index of the next start values (begins.h) to use */
    uint64_t decisions;
    struct watch_waits waits; /* waits of tasks with the default values */
    bool depends_on_time;     /* in some configuration, decisions depended on absolute time */
};

static int say(const struct simulator_setup *setup, const char *what, int status)
{
    const char *set = setup->tunables ? setup->tunables : "";
    fprintf(stderr, "schedlab-sim: policy %s%s%s, CPUs: %u: %s\n", setup->policy, *set ? " " : "",
            set, setup->cpus, what);
    return status;
}

/* Reports a broken rule of policy.h that was found outside of a hook. Returns the exit status. */
static int break_rule(const struct simulator_setup *setup, const char *text)
{
    fprintf(stderr, "schedlab-sim: policy %s broke a rule: %s, with %u CPUs and %s\n",
            setup->policy, text, setup->cpus,
            setup->tunables ? setup->tunables : "no tunables set");
    return MACHINE_BROKEN;
}

static bool is_queued(const struct task *task)
{
    return ((const struct process *)task)->place == PLACE_QUEUED;
}

/* Returns an exit status. */
static int run_workload(const struct simulator_setup *setup, const char *path,
                        struct progress *progress, uint64_t until)
{
    struct simulator_workload workload;
    struct simulator_error error;
    struct simulator_counts counts;
    if (!simulator_load_workload(&workload, path, setup->tick_ns, &error))
        return say(setup, error.text, EXIT_WRONG_USAGE);
    watch_setup(setup);
    struct simulator *simulator = simulator_create(setup, &workload, &error);
    simulator_free_workload(&workload);
    if (!simulator)
        return say(setup, error.text, EXIT_WRONG_USAGE);
    watch_machine(&(struct watched){
        .now = &simulator->now,
        .scheduler = &simulator->scheduler,
        .queues = simulator->queues,
        .tasks = simulator->processes,
        .task_bytes = simulator->process_bytes,
        .task_count = simulator->process_limit,
        .is_queued = is_queued,
    });
    uint64_t kills = watch_kills();
    bool good = simulator_run(simulator, until, &error) != SIMULATOR_FAILED;
    good = good || kills < watch_kills(); /* tasks that were killed may have left others waiting */
    good = good && simulator_audit(simulator, &error);
    simulator_count(simulator, &counts);
    watch_end_of_setup();
    good = good && (kills < watch_kills() || simulator_drain(simulator, &error));
    watch_machine(NULL);
    simulator_destroy(simulator);
    progress->setups++;
    progress->decisions += counts.decisions;
    return good ? 0 : say(setup, error.text, MACHINE_BROKEN);
}

static int run(const struct simulator_setup *setup, struct progress *progress, uint64_t until)
{
    return run_workload(setup, progress->workload, progress, until);
}

static const struct simulator_costs costs = {
    .scheduler = 300,
    .context_switch = 120,
    .tick = 700,
    .wakeup = 500,
    .interrupt = 150,
    .call = 300,
    .sleep = 500,
    .pipe = 500,
    .fork = 6000,
    .exit = 2000,
    .reap = 800,
}; /* from those of the kernel */

/* Simulates the configuration with clocks that start `earlier` ns before those of `begin`, and
 * compares the decisions. Returns an exit status. */
static int run_earlier(struct simulator_setup setup, const struct begin *begin, uint64_t earlier,
                       struct progress *progress, uint64_t until)
{
    setup.policy_clock = begin->clock - earlier;
    setup.policy_run_time = begin->run_time - earlier;
    return run(&setup, progress, until);
}

/* Simulates the configuration with one pair of start values. Returns an exit status. If
 * decisions differ when numbers wrap, checks whether they also differ otherwise: the policy then
 * depends on absolute time, which is allowed. */
static int run_from(const struct simulator_setup *setup, const struct begin *begin,
                    struct progress *progress, uint64_t until)
{
    char what[200];
    char text[300];
    watch_keep_decisions();
    int status = run_earlier(*setup, begin, begin->apart, progress, until);
    watch_compare_decisions();
    if (status == 0)
        status = run_earlier(*setup, begin, 0, progress, until);
    if (status || watch_decided_the_same(what, sizeof(what)))
        return status;
    snprintf(text, sizeof(text), "its decisions change while clock and run times pass %s: %s",
             begin->value, what);
    for (size_t i = 0; i < BEGIN_EIGHTHS; i++) {
        watch_compare_decisions();
        status = run_earlier(*setup, begin, begin->apart / 8 * begin_eighths[i], progress, until);
        if (status)
            return status;
        if (!watch_decided_the_same(what, sizeof(what))) {
            progress->depends_on_time = true;
            return 0;
        }
    }
    return break_rule(setup, text);
}

/* Simulates the configuration with all start values, or with only one pair, a different one at
 * each call. */
static int run_from_clocks(const struct simulator_setup *setup, struct progress *progress,
                           uint64_t until, bool all)
{
    uint32_t chosen = progress->chosen++ % BEGINS;
    int status = 0;
    for (uint32_t i = 0; i < BEGINS && status == 0; i++) {
        if (all || i == chosen)
            status = run_from(setup, &begins[i], progress, i == 0 ? until : PART_NS);
    }
    return status;
}

static int run_on_cpus(const char *policy, const char *tunables, struct progress *progress,
                       uint64_t until)
{
    static const uint32_t cpus[] = {1, 4};
    struct simulator_setup setup = {
        .policy = policy,
        .tunables = tunables,
        .processes = PROCESSES,
        .tick_ns = TICK_NS,
        .seed = 1,
        .costs = costs,
    };
    int status = 0;
    for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]) && status == 0; i++) {
        setup.cpus = cpus[i];
        setup.shape = cpus[i] > 1 ? SHAPE : NULL;
        status = run_from_clocks(&setup, progress, until, until == FULL_NS);
    }
    return status;
}

/* If the policy declares that it shares CPU time: checks that none of five tasks with equal
 * shares waits for a quarter of the simulation. */
static int run_sharing(const struct policy *policy, struct progress *progress)
{
    const struct simulator_setup setup = {
        .policy = policy->name,
        .processes = PROCESSES,
        .tick_ns = TICK_NS,
        .seed = 1,
        .cpus = 1,
        .costs = costs,
    };
    char text[200];
    watch_forget_waits();
    int status = run_workload(&setup, progress->sharing, progress, SHARED_NS);
    struct watch_waits waits = watch_waits();
    if (status || waits.longest < SHARED_NS / 4)
        return status;
    snprintf(text, sizeof(text),
             "shares_by() promises each task its share, but pid %d waited %.0f ms of %.0f, one of "
             "five tasks of equal shares",
             waits.pid, (double)waits.longest / 1e6, (double)SHARED_NS / 1e6);
    return break_rule(&setup, text);
}

/* Simulates twice: the host asks the policy for a task for a CPU that no queued task may use, or
 * does not ask. Compares the decisions. */
static int run_bound(const char *policy, const char *tunables, struct progress *progress)
{
    const struct simulator_setup setup = {
        .policy = policy,
        .tunables = tunables,
        .processes = PROCESSES,
        .cpus = 2,
        .tick_ns = TICK_NS,
        .seed = 1,
        .costs = costs,
    };
    char what[200];
    char text[400];
    if (!*progress->bound)
        return 0;
    watch_asks(ASKS_SILENT);
    watch_keep_decisions();
    int status = run_workload(&setup, progress->bound, progress, BOUND_NS);
    watch_asks(ASKS_CHECKED);
    watch_compare_decisions();
    if (status == 0)
        status = run_workload(&setup, progress->bound, progress, BOUND_NS);
    watch_asks(ASKS_PASS);
    if (status || watch_decided_the_same(what, sizeof(what)))
        return status;
    snprintf(text, sizeof(text),
             "pick() or steal() for a CPU that no queued task may use changes later decisions: "
             "%s; use task_may_run_on(), or the functions whose names end in _on in task_list.h "
             "and similar headers",
             what);
    return break_rule(&setup, text);
}

/* Simulates one configuration with the user's workload, where only computing takes time. */
static int run_alone(char **arguments, struct progress *progress)
{
    struct simulator_setup setup = {
        .policy = arguments[2],
        .tunables = arguments[3],
        .processes = PROCESSES,
        .cpus = (uint32_t)strtoul(arguments[4], NULL, 10),
        .tick_ns = strtoull(arguments[5], NULL, 10),
        .seed = 1,
        .costs = simulator_costs_none,
    };
    return run(&setup, progress, UINT64_MAX / 4);
}

static int run_presets(const struct policy *policy, struct progress *progress)
{
    char name[80];
    int status = 0;
    for (uint32_t i = 0; i < policy->preset_count && status == 0; i++) {
        snprintf(name, sizeof(name), "%s:%s", policy->name, policy->presets[i].name);
        status = run_on_cpus(name, NULL, progress, PART_NS);
        if (status == 0)
            status = run_bound(name, NULL, progress);
    }
    return status;
}

static int run_tunables(const struct policy *policy, struct progress *progress)
{
    char text[120];
    int status = 0;
    for (uint32_t i = 0; i < 2 * policy->tunable_count && status == 0; i++) {
        const struct tunable *tunable = &policy->tunables[i / 2];
        int64_t value = i % 2 ? tunable->maximum : tunable->minimum;
        snprintf(text, sizeof(text), "%s=%" PRId64, tunable->name, value);
        if (value != tunable->standard)
            status = run_on_cpus(policy->name, text, progress, PART_NS);
    }
    return status;
}

/* Simulates all configurations, or only those with the given `tunables`. */
static int run_all(const struct policy *policy, const char *tunables, struct progress *progress)
{
    int status = run_on_cpus(policy->name, tunables, progress, FULL_NS);
    progress->waits = watch_waits();
    if (status == 0)
        status = run_bound(policy->name, tunables, progress);
    if (status == 0 && !tunables && policy->shares_by)
        status = run_sharing(policy, progress);
    if (status == 0 && !tunables)
        status = run_presets(policy, progress);
    if (status == 0 && !tunables)
        status = run_tunables(policy, progress);
    return status;
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 4 || argument_count > 6) {
        fprintf(stderr, "usage: schedlab-sim WORKLOAD SHARING BOUND [TUNABLE=VALUE,...]\n"
                        "       schedlab-sim WORKLOAD POLICY TUNABLE=VALUE,... CPUS TICK_NS\n");
        return EXIT_WRONG_USAGE;
    }
    struct progress progress = {
        .workload = arguments[1], .sharing = arguments[2], .bound = arguments[3]};
    int status = argument_count == 6 ? run_alone(arguments, &progress)
                                     : run_all(policies[0], arguments[4], &progress);
    const struct watch_waits *waits = &progress.waits;
    if (status == 0)
        printf("setups %u\ndecisions %" PRIu64 "\nkills %" PRIu64 "\nlongest_wait_ns %" PRIu64
               "\nwaiter %d\ncpus %u\nnever_served %u\ndepends_on_time %d\n",
               progress.setups, progress.decisions, watch_kills(), waits->longest, waits->pid,
               waits->cpus, waits->never_served, progress.depends_on_time);
    return status;
}
