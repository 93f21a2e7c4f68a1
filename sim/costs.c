/* SPDX-License-Identifier: MIT */

/* What things take, and how it is said in text. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/machine.h"

/* Measured from traces of our kernel on Spike, under round-robin: docs/simulator.md says how. */
const struct simulator_costs simulator_costs_kernel = {
    .scheduler = 296,
    .context_switch = 145,
    .tick = 5523,
    .interrupt = 7500,
    .migration = 0,
    .call = 2700,
    .fork = 15000,
    .exit = 17300,
};

const struct simulator_costs simulator_costs_none = {0};

static uint64_t *find_cost(struct simulator_costs *costs, const char *name, size_t length)
{
    const struct {
        const char *name;
        uint64_t *value;
    } all[] = {
        {"scheduler", &costs->scheduler}, {"switch", &costs->context_switch},
        {"tick", &costs->tick},           {"interrupt", &costs->interrupt},
        {"migration", &costs->migration}, {"call", &costs->call},
        {"fork", &costs->fork},           {"exit", &costs->exit},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strlen(all[i].name) == length && memcmp(all[i].name, name, length) == 0)
            return all[i].value;
    }
    return NULL;
}

static bool read_number(const char *text, size_t length, uint64_t *value)
{
    char *end;
    if (length == 0 || *text < '0' || *text > '9')
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && end == text + length;
}

static bool read_cost(struct simulator_costs *costs, const char *text, size_t length,
                      struct simulator_error *error)
{
    size_t name = strcspn(text, "=,");
    uint64_t *cost = name < length ? find_cost(costs, text, name) : NULL;
    if (!cost) {
        set_error(error,
                  "cost %.*s: expected kernel or none, then NAME=NANOSECONDS, where NAME is "
                  "scheduler, switch, tick, interrupt, migration, call, fork or exit",
                  (int)length, text);
        return false;
    }
    if (!read_number(text + name + 1, length - name - 1, cost)) {
        set_error(error, "cost %.*s: expected a number of nanoseconds", (int)length, text);
        return false;
    }
    return true;
}

bool simulator_read_costs(struct simulator_costs *costs, const char *text,
                          struct simulator_error *error)
{
    *costs = simulator_costs_kernel;
    for (bool first = true; *text; first = false) {
        size_t length = strcspn(text, ",");
        if (first && length == 6 && memcmp(text, "kernel", 6) == 0)
            *costs = simulator_costs_kernel;
        else if (first && length == 4 && memcmp(text, "none", 4) == 0)
            *costs = simulator_costs_none;
        else if (!read_cost(costs, text, length, error))
            return false;
        text += length + (text[length] == ',');
    }
    return true;
}
