/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SIM_MACHINES_H
#define TESTS_SIM_MACHINES_H

/* Shared by the simulator's C tests: machines from texts, every policy and preset. */

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

/* Returns the workload file for a text. It is in the table that tests/shared/c_workloads.py makes
 * from a test's source: pairs of lengths, each followed by the text and the file. */
TEST_FUNCTION const void *file_of(const char *text, uint64_t *bytes)
{
    static uint64_t table[1 << 16];
    static size_t words;
    if (words == 0) {
        const char *path = getenv("SCHEDLAB_TEST_WORKLOADS");
        FILE *file = path ? fopen(path, "rb") : NULL;
        check(file); /* pytest passes the path of the table */
        words = fread(table, sizeof(*table), sizeof(table) / sizeof(*table), file);
        check(words < sizeof(table) / sizeof(*table) && fclose(file) == 0);
    }
    for (size_t at = 0; at < words;) {
        const uint64_t *contents = &table[at + 2 + (table[at] + 7) / 8];
        *bytes = table[at + 1];
        if (strcmp((const char *)&table[at + 2], text) == 0)
            return contents;
        at = (size_t)(contents - table) + (*bytes + 7) / 8;
    }
    fprintf(stderr, "no workload in the table: %s\n", text);
    check(false);
    return NULL;
}

TEST_FUNCTION struct simulator_workload read_text(const char *text)
{
    uint64_t bytes = 0;
    struct simulator_workload workload;
    struct simulator_error error = {""};
    const void *file = file_of(text, &bytes);
    if (!simulator_read_workload(&workload, "test", file, bytes, TICK, &error))
        fprintf(stderr, "%s\n", error.text);
    check(error.text[0] == '\0');
    return workload;
}

TEST_FUNCTION struct simulator_setup setup_of(const char *policy, uint32_t cpus)
{
    return (struct simulator_setup){
        .policy = policy, .cpus = cpus, .processes = 300, .tick_ns = TICK, .seed = 1};
}

/* Frees the workload. */
TEST_FUNCTION struct simulator *create_of(const struct simulator_setup *setup,
                                          struct simulator_workload *workload)
{
    struct simulator_error error = {""};
    struct simulator *simulator = simulator_create(setup, workload, &error);
    simulator_free_workload(workload);
    if (!simulator)
        fprintf(stderr, "%s\n", error.text);
    check(simulator);
    return simulator;
}

TEST_FUNCTION struct simulator *create(const struct simulator_setup *setup, const char *text)
{
    struct simulator_workload workload = read_text(text);
    return create_of(setup, &workload);
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
