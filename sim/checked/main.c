/* SPDX-License-Identifier: MIT */

/*
 * Runs the one policy that is compiled in, watched, in one setup after another: with the values
 * that it has by itself, with those of each preset, and with the least and the greatest value of
 * each tunable; on one CPU and on several. Exit status 0: no rule was broken.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/machine_status.h"
#include "policies/registry.h"
#include "sim/checked/watch.h"
#include "sim/control.h"
#include "sim/machine.h"
#include "sim/workload.h"

#define PROCESSES 40
#define TICK_NS   1000000ull
#define WHOLE_NS  300000000ull                                /* of the policy as it is */
#define PART_NS   100000000ull                                /* of each other value */
#define SHAPE     "core/2,cache/2,node/2,distance10.21:21.10" /* by which all work takes as long */

enum { EXIT_WRONG_USAGE = 2 };

/* It makes no checkpoints, which would bear this. */
extern const char build_name[];
const char build_name[64] = "checked";

struct progress {
    const char *workload;
    uint32_t setups;
    uint64_t decisions;
};

static int say(const struct simulator_setup *setup, const char *what, int status)
{
    const char *set = setup->tunables ? setup->tunables : "";
    fprintf(stderr, "schedlab-sim: policy %s%s%s, CPUs: %u: %s\n", setup->policy, *set ? " " : "",
            set, setup->cpus, what);
    return status;
}

static bool is_queued(const struct task *task)
{
    return ((const struct process *)task)->place == PLACE_QUEUED;
}

/* Returns an exit status. */
static int run(const struct simulator_setup *setup, struct progress *progress, uint64_t until)
{
    struct simulator_workload workload;
    struct simulator_error error;
    struct simulator_counts counts;
    if (!simulator_load_workload(&workload, progress->workload, TICK_NS, &error))
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
    good = good || kills < watch_kills(); /* processes that others wait for are gone then */
    good = good && simulator_audit(simulator, &error);
    simulator_count(simulator, &counts);
    good = good && (kills < watch_kills() || simulator_drain(simulator, &error));
    watch_machine(NULL);
    simulator_destroy(simulator);
    progress->setups++;
    progress->decisions += counts.decisions;
    return good ? 0 : say(setup, error.text, MACHINE_BROKEN);
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
}; /* about those of the kernel */

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
        status = run(&setup, progress, until);
    }
    return status;
}

/* One setup, on which only computing takes time. */
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

/* All setups, or those with these tunables. */
static int run_all(const struct policy *policy, const char *tunables, struct progress *progress)
{
    int status = run_on_cpus(policy->name, tunables, progress, WHOLE_NS);
    if (status == 0 && !tunables)
        status = run_presets(policy, progress);
    if (status == 0 && !tunables)
        status = run_tunables(policy, progress);
    return status;
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 2 || (argument_count > 3 && argument_count != 6)) {
        fprintf(stderr, "usage: schedlab-sim WORKLOAD [TUNABLE=VALUE,...]\n"
                        "       schedlab-sim WORKLOAD POLICY TUNABLE=VALUE,... CPUS TICK_NS\n");
        return EXIT_WRONG_USAGE;
    }
    struct progress progress = {.workload = arguments[1]};
    int status = argument_count == 6 ? run_alone(arguments, &progress)
                                     : run_all(policies[0], arguments[2], &progress);
    if (status == 0)
        printf("setups %u\ndecisions %" PRIu64 "\nkills %" PRIu64 "\n", progress.setups,
               progress.decisions, watch_kills());
    return status;
}
