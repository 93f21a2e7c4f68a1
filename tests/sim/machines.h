/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SIM_MACHINES_H
#define TESTS_SIM_MACHINES_H

/* What the tests of the simulator share: machines from texts, every policy and preset. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/registry.h"
#include "sim/machine.h"
#include "sim/workload.h"
#include "tests/host/check.h"
#include "tests/sim/test_shape.h"

#define TEST_FUNCTION static __attribute__((unused))

#define TICK 1000000ull
#define MS   1000000ull

TEST_FUNCTION struct simulator_workload read_text(const char *text)
{
    struct simulator_workload workload;
    struct simulator_error error = {""};
    if (!simulator_read_workload(&workload, "test", text, TICK, &error))
        fprintf(stderr, "%s\n", error.text);
    check(error.text[0] == '\0');
    return workload;
}

TEST_FUNCTION struct simulator_setup setup_of(const char *policy, uint32_t cpus)
{
    return (struct simulator_setup){
        .policy = policy, .cpus = cpus, .processes = 300, .tick_ns = TICK, .seed = 1};
}

TEST_FUNCTION struct simulator *create(const struct simulator_setup *setup, const char *text)
{
    struct simulator_error error = {""};
    struct simulator_workload workload = read_text(text);
    struct simulator *simulator = simulator_create(setup, &workload, &error);
    simulator_free_workload(&workload);
    if (!simulator)
        fprintf(stderr, "%s\n", error.text);
    check(simulator);
    return simulator;
}

TEST_FUNCTION void for_each_policy(void (*test)(const char *policy))
{
    char text[128];
    for (uint32_t i = 0; i < policy_sources_count; i++) {
        if (i < policies_count)
            test(policies[i]->name);
        for (uint32_t j = 0; j < policies[i]->preset_count; j++) {
            snprintf(text, sizeof(text), "%s:%s", policies[i]->name, policies[i]->presets[j].name);
            test(text);
        }
    }
}

#endif
