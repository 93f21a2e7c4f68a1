/* SPDX-License-Identifier: MIT */

/*
 * libFuzzer target: programs and external acts made of the input's bytes, on 1 to 16 CPUs, under
 * every policy and preset. Everything is checked after each act and at each stop; at the end all
 * queued tasks are dequeued.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "sim/control.h"
#include "tests/sim/random_programs.h"
#include "tests/sim/test_shape.h"

#define TICK_NS   1000000
#define PROCESSES 48
#define ACTS_MAX  64

static _Noreturn void found(const char *policy, const char *what)
{
    fprintf(stderr, "%s: %s\n", policy, what);
    abort();
}

/* A workload may end the run in these ways; a policy may not end it at all. */
static void expect_fault_of_workload(const char *policy, const struct simulator_error *error)
{
    static const char *const faults[] = {"too many processes", "all processes wait",
                                         "repeats steps that take no time"};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (strstr(error->text, faults[i]))
            return;
    }
    found(policy, error->text);
}

static void audit(const struct simulator *simulator, const char *policy)
{
    struct simulator_error error;
    if (!simulator_audit(simulator, &error))
        found(policy, error.text);
}

/* False: the run has ended. */
static bool run(struct simulator *simulator, uint64_t until, const char *policy)
{
    struct simulator_error error;
    enum simulator_status status = simulator_run(simulator, until, &error);
    if (status == SIMULATOR_FAILED)
        expect_fault_of_workload(policy, &error);
    if (status != SIMULATOR_FAILED)
        audit(simulator, policy);
    return status == SIMULATOR_TIME;
}

static void play(struct source *source, struct simulator *simulator, const char *policy)
{
    struct simulator_error error;
    uint64_t time = 1000; /* the first process is forked */
    bool goes_on = run(simulator, time, policy);
    for (uint32_t i = 0; goes_on && source->left > 0 && i < ACTS_MAX; i++) {
        if (draw(source, 2) == 0) {
            time += draw_time(source);
            goes_on = run(simulator, time, policy);
        } else {
            draw_act(source, simulator);
            audit(simulator, policy);
        }
    }
    if (goes_on && run(simulator, time + 5 * TICK_NS, policy) &&
        !simulator_drain(simulator, &error))
        found(policy, error.text);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length)
{
    static struct random_workload made;
    char policy[RANDOM_TEXT_BYTES];
    struct simulator_error error;
    struct source source = {bytes, length};
    draw_policy(&source, policy);
    struct simulator_setup setup = {
        .policy = policy,
        .cpus = 1 + draw(&source, 16),
        .processes = PROCESSES,
        .tick_ns = TICK_NS,
        .seed = draw(&source, 256),
        .costs = draw(&source, 2) ? simulator_costs_kernel() : simulator_costs_none,
    };
    setup.shape = setup.seed % 4 == 3 ? TEST_SHAPE : NULL;
    draw_workload(&source, &made, true);
    struct simulator *simulator = simulator_create(&setup, &made.workload, &error);
    if (!simulator)
        found(policy, error.text);
    play(&source, simulator, policy);
    simulator_destroy(simulator);
    return 0;
}
