/* SPDX-License-Identifier: MIT */

/*
 * CPU-bound processes that differ in one attribute, by the same step from one to the next. In
 * addition sleepers, which compute for less than a tick and sleep, and changers, which compute,
 * sleep and take another priority, many times.
 */

#include "workloads/api/workload.h"

enum { PRIORITY = 1, TICKETS = 2, WEIGHT = 3 };

static int64_t processes = 4;
static int64_t iterations = 6250000;
static int64_t attribute = WEIGHT;
static int64_t first = 1;
static int64_t step = 1;
static int64_t sleepers;
static int64_t changers;
static int64_t rounds = 30;

static void take_attribute(int64_t value)
{
    if (attribute == PRIORITY)
        workload_priority((int)value);
    else if (attribute == TICKETS)
        workload_tickets((int)value);
    else
        workload_weight((int)value);
}

static void compute(int64_t number)
{
    workload_group("cpu");
    take_attribute(first + number * step);
    workload_sleep(1); /* all have their attributes before one computes */
    workload_burn((uint64_t)iterations);
}

static void doze(int64_t number)
{
    (void)number;
    workload_group("sleeper");
    for (int64_t i = 0; i < rounds; i++) {
        workload_burn(1 + workload_random(30000));
        workload_sleep(1 + (int64_t)workload_random(5));
    }
}

static void change(int64_t number)
{
    (void)number;
    workload_group("changer");
    for (int64_t i = 0; i < rounds; i++) {
        workload_priority((int)workload_random(11));
        workload_burn(1 + workload_random(300000));
        workload_sleep((int64_t)workload_random(6));
    }
}

static void start(void (*run)(int64_t number), int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        workload_start(run, i);
}

int main(int argc, char *argv[])
{
    const struct workload_option options[] = {
        {'n', "CPU-bound processes", &processes, 0, 1000},
        {'i', "iterations of each, 10 ns of a 1 GHz CPU each", &iterations, 1, 1000000000000},
        {'a', "attribute: 1 priority, 2 tickets, 3 weight", &attribute, PRIORITY, WEIGHT},
        {'f', "the attribute of the first", &first, 0, 1000000},
        {'d', "what the next one has more", &step, 0, 100000},
        {'z', "sleepers", &sleepers, 0, 1000},
        {'c', "changers", &changers, 0, 1000},
        {'r', "rounds of a sleeper or changer", &rounds, 1, 1000000},
    };
    workload_init(argc, argv, "CPU-bound processes that differ in an attribute.", options,
                  sizeof(options) / sizeof(options[0]));

    workload_begin();
    start(compute, processes);
    start(doze, sleepers);
    start(change, changers);
    return workload_finish();
}
