/* SPDX-License-Identifier: MIT */

/* Costs of operations, and their representation as text. */

#include "sim/costs.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/machine.h"

#define COST_MOST        1000000000000ull
#define INSTRUCTION_MOST 1000000ull /* 1 us for each instruction */

static const struct {
    const char *name;
    size_t offset;
} all_costs[] = {
    {"boot", offsetof(struct simulator_costs, boot)},
    {"stagger", offsetof(struct simulator_costs, stagger)},
    {"scheduler", offsetof(struct simulator_costs, scheduler)},
    {"crowd", offsetof(struct simulator_costs, crowd)},
    {"switch", offsetof(struct simulator_costs, context_switch)},
    {"tick", offsetof(struct simulator_costs, tick)},
    {"wakeup", offsetof(struct simulator_costs, wakeup)},
    {"interrupt", offsetof(struct simulator_costs, interrupt)},
    {"migration", offsetof(struct simulator_costs, migration)},
    {"call", offsetof(struct simulator_costs, call)},
    {"sleep", offsetof(struct simulator_costs, sleep)},
    {"pipe", offsetof(struct simulator_costs, pipe)},
    {"fork", offsetof(struct simulator_costs, fork)},
    {"fork_look", offsetof(struct simulator_costs, fork_look)},
    {"fork_new", offsetof(struct simulator_costs, fork_new)},
    {"fork_return", offsetof(struct simulator_costs, fork_return)},
    {"first_run", offsetof(struct simulator_costs, first_run)},
    {"exit", offsetof(struct simulator_costs, exit)},
    {"reap", offsetof(struct simulator_costs, reap)},
    {"arrival", offsetof(struct simulator_costs, arrival)},
    {"instructions", offsetof(struct simulator_costs, instructions)},
};

enum { COSTS = sizeof(all_costs) / sizeof(all_costs[0]) };

const struct simulator_costs simulator_costs_none = {0};

struct simulator_costs simulator_costs_kernel(void)
{
    struct simulator_costs costs;
    struct simulator_error error;
    if (!simulator_read_costs(&costs, "kernel", &error))
        abort(); /* cannot happen: a test checks that kernel.json can be parsed */
    return costs;
}

static uint64_t *cost_at(struct simulator_costs *costs, uint32_t number)
{
    return (uint64_t *)(void *)((char *)costs + all_costs[number].offset);
}

/* Returns the index of a cost, or COSTS if no cost has this name. */
static uint32_t find_cost(const char *name, size_t length)
{
    uint32_t i = 0;
    while (i < COSTS &&
           (strlen(all_costs[i].name) != length || memcmp(all_costs[i].name, name, length) != 0))
        i++;
    return i;
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

/* Returns true if a cost of `policy` also applies to `other`. A policy's cost applies to its
 * presets; null means all policies. */
static bool covers(const char *policy, size_t length, const char *other)
{
    return !policy ||
           (strncmp(other, policy, length) == 0 && (other[length] == '\0' || other[length] == ':'));
}

/* Removes earlier values of the policies that a new value applies to, because the last value
 * wins. */
static void forget_covered(struct simulator_costs *costs, uint32_t number, const char *policy,
                           size_t length)
{
    uint32_t remaining = 0;
    for (uint32_t i = 0; i < costs->policy_count; i++) {
        const struct simulator_policy_cost *cost = &costs->policies[i];
        if (cost->cost != number || !covers(policy, length, cost->policy))
            costs->policies[remaining++] = *cost;
    }
    costs->policy_count = remaining;
}

/* Returns a new entry for a cost of one policy, or null if all entries are used. */
static uint64_t *cost_of_policy(struct simulator_costs *costs, uint32_t number, const char *policy,
                                size_t length)
{
    struct simulator_policy_cost *new = &costs->policies[costs->policy_count];
    if (costs->policy_count == SIMULATOR_POLICY_COSTS_MAX || length >= sizeof(new->policy))
        return NULL;
    *new = (struct simulator_policy_cost){.cost = number};
    memcpy(new->policy, policy, length);
    costs->policy_count++;
    return &new->value;
}

static bool wrong_name(const char *text, size_t length, struct simulator_error *error)
{
    size_t used =
        (size_t)snprintf(error->text, sizeof(error->text),
                         "cost %.*s: expected kernel, none or textbook, then NAME=NANOSECONDS or "
                         "NAME.POLICY=NANOSECONDS, where NAME is one of",
                         (int)(length < 40 ? length : 40), text);
    for (uint32_t i = 0; i < COSTS; i++)
        used += (size_t)snprintf(error->text + used, sizeof(error->text) - used, " %s",
                                 all_costs[i].name);
    return false;
}

/* Returns where to store the value of "NAME" or "NAME.POLICY", or null with the error if there
 * is no such cost. */
static uint64_t *named_cost(struct simulator_costs *costs, const char *text, size_t length,
                            struct simulator_error *error)
{
    const char *dot = memchr(text, '.', length);
    size_t name = dot ? (size_t)(dot - text) : length;
    uint32_t number = find_cost(text, name);
    struct policy_choice choice;
    if (number == COSTS)
        return wrong_name(text, length, error), NULL;
    const char *policy = dot ? dot + 1 : NULL;
    size_t rest = dot ? length - name - 1 : 0;
    if (policy && policy_choose(policy, rest, &choice)) {
        set_error(error, "cost %.*s: expected a policy, or POLICY:PRESET, after the dot",
                  (int)length, text);
        return NULL;
    }
    forget_covered(costs, number, policy, rest);
    if (!policy)
        return cost_at(costs, number);
    uint64_t *value = cost_of_policy(costs, number, policy, rest);
    if (!value)
        set_error(error, "cost %.*s: expected at most %d costs of policies", (int)length, text,
                  SIMULATOR_POLICY_COSTS_MAX);
    return value;
}

/* Adds to a cost under all policies. */
static bool add_to_cost(struct simulator_costs *costs, const char *text, size_t length,
                        uint64_t added, struct simulator_error *error)
{
    uint32_t number = find_cost(text, length);
    if (number == COSTS)
        return wrong_name(text, length, error);
    bool fits = !__builtin_add_overflow(*cost_at(costs, number), added, cost_at(costs, number));
    for (uint32_t i = 0; i < costs->policy_count; i++) {
        uint64_t *value = &costs->policies[i].value;
        if (costs->policies[i].cost == number)
            fits = !__builtin_add_overflow(*value, added, value) && fits;
    }
    if (!fits)
        set_error(error, "cost %.*s: the sum is too large", (int)length, text);
    return fits;
}

static bool read_cost(struct simulator_costs *costs, const char *text, size_t length,
                      struct simulator_error *error)
{
    const char *equals = memchr(text, '=', length);
    if (!equals)
        return wrong_name(text, length, error);
    size_t name = (size_t)(equals - text);
    uint64_t value;
    if (!read_number(equals + 1, length - name - 1, &value)) {
        set_error(error, "cost %.*s: expected a number of nanoseconds", (int)length, text);
        return false;
    }
    if (name > 0 && text[name - 1] == '+')
        return add_to_cost(costs, text, name - 1, value, error);
    uint64_t *cost = named_cost(costs, text, name, error);
    if (!cost)
        return false;
    *cost = value;
    return true;
}

bool simulator_read_costs(struct simulator_costs *costs, const char *text,
                          struct simulator_error *error)
{
    size_t first = strcspn(text, ",");
    bool textbook = first == 8 && memcmp(text, "textbook", 8) == 0;
    bool none = textbook || (first == 4 && memcmp(text, "none", 4) == 0);
    bool kernel = first == 6 && memcmp(text, "kernel", 6) == 0;
    *costs = simulator_costs_none;
    costs->bursts_first = textbook;
    if (none || kernel)
        text += first + (text[first] == ',');
    if (!none && text != costs_of_kernel && !simulator_read_costs(costs, costs_of_kernel, error))
        return false;
    while (*text) {
        size_t length = strcspn(text, ",");
        if (!read_cost(costs, text, length, error))
            return false;
        text += length + (text[length] == ',');
    }
    return true;
}

static bool policies_are_sound(const struct simulator_costs *costs)
{
    if (costs->policy_count > SIMULATOR_POLICY_COSTS_MAX)
        return false;
    for (uint32_t i = 0; i < costs->policy_count; i++) {
        const struct simulator_policy_cost *cost = &costs->policies[i];
        if (cost->cost >= COSTS || !memchr(cost->policy, '\0', sizeof(cost->policy)))
            return false;
    }
    return true;
}

bool costs_check(const struct simulator_costs *costs, struct simulator_error *error)
{
    struct simulator_costs copy = *costs;
    uint64_t most = 0;
    if (!policies_are_sound(costs)) {
        set_error(error, "unknown cost of a policy");
        return false;
    }
    for (uint32_t i = 0; i < COSTS; i++)
        most = *cost_at(&copy, i) > most ? *cost_at(&copy, i) : most;
    for (uint32_t i = 0; i < costs->policy_count; i++)
        most = costs->policies[i].value > most ? costs->policies[i].value : most;
    if (costs->instructions > INSTRUCTION_MOST) {
        set_error(error, "cost instructions=%llu: too large; use at most %llu",
                  (unsigned long long)costs->instructions, INSTRUCTION_MOST);
        return false;
    }
    if (most > COST_MOST)
        set_error(error,
                  "cost of %llu ns: too large; use at most 1000 "
                  "s",
                  (unsigned long long)most);
    return most <= COST_MOST;
}

static bool is_of(const struct simulator_policy_cost *cost, const struct policy_choice *choice,
                  bool preset)
{
    size_t length = strlen(choice->policy->name);
    if (strncmp(cost->policy, choice->policy->name, length) != 0)
        return false;
    if (!preset)
        return cost->policy[length] == '\0';
    return choice->preset && cost->policy[length] == ':' &&
           strcmp(cost->policy + length + 1, choice->preset->name) == 0;
}

struct simulator_costs costs_under(const struct simulator_costs *costs,
                                   const struct policy_choice *choice)
{
    struct simulator_costs result = *costs;
    for (int preset = 0; preset < 2; preset++) {
        for (uint32_t i = 0; i < costs->policy_count; i++) {
            if (is_of(&costs->policies[i], choice, preset))
                *cost_at(&result, costs->policies[i].cost) = costs->policies[i].value;
        }
    }
    return result;
}
