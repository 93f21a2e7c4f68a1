/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SCENARIO_RANDOM_H
#define TESTS_SCENARIO_RANDOM_H

#include "tests/scenario/scenario.h"

/*
 * A random scenario, determined by a number. A root forks up to seven processes. They compute,
 * sleep, yield, change their attributes, fork children, and wait for them. Numbers of RANDOM_MIX
 * and above give processes that take tickets and a weight and only compute, for 100 ticks each.
 * For machines without costs.
 */
#define RANDOM_MIX      1000000
#define RANDOM_ROLES    12
#define RANDOM_CHILD    (RANDOM_ROLES - 1) /* forked by the others */
#define RANDOM_TICKS    30
#define RANDOM_ACTS_MAX 8

struct random_scenario {
    struct role roles[RANDOM_ROLES];
    struct scenario scenario;
    uint64_t state;
};

/* splitmix64 (Steele, Lea and Flood 2014) */
static inline uint32_t random_below(struct random_scenario *made, uint32_t limit)
{
    uint64_t value = made->state += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return (uint32_t)((value ^ (value >> 31)) % limit);
}

static inline int32_t random_tick(struct random_scenario *made)
{
    return (int32_t)random_below(made, RANDOM_TICKS);
}

/* An act that changes no other process. (A process may have two children, but an act could mean
 * only one: it changes no child.) */
static inline struct step random_step(struct random_scenario *made, uint32_t role)
{
    struct step step = {.work = random_below(made, 150)};
    switch (random_below(made, role == RANDOM_CHILD ? 4 : 7)) {
    case 0:
    case 1:
        step.act = ACT_SLEEP_UNTIL;
        step.value = random_tick(made);
        break;
    case 2:
        step.act = ACT_WORK_UNTIL;
        step.value = random_tick(made);
        break;
    case 3:
        step.act = ACT_YIELD;
        break;
    case 4:
        step = (struct step){step.work, ACT_SET_PRIORITY, role, (int32_t)random_below(made, 11)};
        break;
    case 5:
        step =
            (struct step){step.work, ACT_SET_TICKETS, role, 1 + (int32_t)random_below(made, 100)};
        break;
    default:
        step = (struct step){step.work, ACT_SET_WEIGHT, role, 1 + (int32_t)random_below(made, 10)};
        break;
    }
    return step;
}

/* Some acts; one in three processes that may fork has a child in the middle of them. */
static inline void random_role(struct random_scenario *made, uint32_t role, bool forks)
{
    struct step *steps = made->roles[role].steps;
    uint32_t acts = 1 + random_below(made, RANDOM_ACTS_MAX);
    uint32_t count = 0;
    bool child = forks && random_below(made, 3) == 0;
    for (uint32_t i = 0; i < acts; i++) {
        steps[count++] = random_step(made, role);
        if (child && i == acts / 2)
            steps[count++] = (struct step){random_below(made, 40), ACT_FORK, RANDOM_CHILD, 0};
    }
    if (child)
        steps[count++] = (struct step){random_below(made, 40), ACT_WAIT, 0, 0};
    steps[count] = (struct step){random_below(made, 300), ACT_END, 0, 0};
}

static inline void random_mix_role(struct random_scenario *made, uint32_t role)
{
    struct step *steps = made->roles[role].steps;
    int32_t tickets = 1 + (int32_t)random_below(made, 100);
    int32_t weight = 1 + (int32_t)random_below(made, 10);
    steps[0] = (struct step){1, ACT_SET_TICKETS, role, tickets};
    steps[1] = (struct step){1, ACT_SET_WEIGHT, role, weight};
    steps[2] = (struct step){10000, ACT_END, 0, 0};
}

static inline const struct scenario *random_scenario(struct random_scenario *made, uint64_t number)
{
    static const char *const names[RANDOM_ROLES] = {"root", "a", "b", "c", "d", "e",
                                                    "f",    "g", "h", "i", "j", "child"};
    *made = (struct random_scenario){.state = number};
    uint32_t players = 1 + random_below(made, SCENARIO_STEPS_MAX / 2 - 1);
    struct step *root = made->roles[0].steps;
    uint32_t count = 0;
    for (uint32_t i = 0; i < RANDOM_ROLES; i++)
        made->roles[i].name = names[i];
    for (uint32_t i = 1; i <= players; i++) {
        root[count++] = (struct step){random_below(made, 120), ACT_FORK, i, 0};
        if (number < RANDOM_MIX)
            random_role(made, i, true);
        else
            random_mix_role(made, i);
    }
    random_role(made, RANDOM_CHILD, false);
    for (uint32_t i = 1; i <= players; i++)
        root[count++] = (struct step){random_below(made, 5), ACT_WAIT, 0, 0};
    root[count] = (struct step){1, ACT_END, 0, 0};
    made->scenario = (struct scenario){"random", made->roles, RANDOM_ROLES};
    return &made->scenario;
}

#endif
